/** The editor shows the block as the server renders it. */
{
  const { blockEditor, blocks, components, element: { createElement }, serverSideRender } = wp
  const name = 'partner-directory/widget'
  blocks.registerBlockType(name, {
    edit() {
      const rendered = createElement(serverSideRender, { block: name })
      return createElement(
        'div',
        blockEditor.useBlockProps(),
        createElement(components.Disabled, null, rendered),
      )
    },
  })
}
