// Optional enhancements: the page's own address and the partner's slug in samples, remembered choices, copying, search,
// and contents that show the current section.
'use strict'
const root = document.documentElement
const all = (selector, from = document) => [...from.querySelectorAll(selector)]
const remember = (name, value) => {
  try {
    localStorage.setItem('reference.' + name, value)
  } catch {
    // The browser forbids storage.
  }
}
const recall = (name) => {
  try {
    return localStorage.getItem('reference.' + name) ?? ''
  } catch {
    return ''
  }
}
const savedTheme = recall('theme')
if (savedTheme) root.style.colorScheme = savedTheme

addEventListener('DOMContentLoaded', () => {
  const status = document.getElementById('page-status')
  const say = (text) => {
    status.textContent = ''
    setTimeout(() => {
      status.textContent = text
    }, 50)
  }

  const theme = document.getElementById('page-theme')
  theme.value = savedTheme
  theme.addEventListener('change', () => {
    root.style.colorScheme = theme.value
    remember('theme', theme.value)
  })

  if (/^https?:/.test(location.origin)) {
    const base = location.origin + location.pathname.replace(/\/[^/]+\/docs$/, '')
    for (const place of all('.origin')) place.textContent = base
  }

  const field = document.querySelector('.slug-field')
  const slug = field.querySelector('input')
  const writeSlug = () => {
    const text = slug.value.trim() || 'demo'
    // The form of a slug, which no key has.
    const isSlug = /^[a-z0-9][a-z0-9-]{0,79}$/.test(text)
    slug.setAttribute('aria-invalid', String(!isSlug))
    if (!isSlug) return
    for (const place of all('.slug')) if (place.textContent !== text) place.textContent = text
    remember('slug', text)
  }
  slug.value = recall('slug')
  writeSlug()
  slug.addEventListener('input', writeSlug)

  const copy = async (button, text, fallback) => {
    const label = button.textContent
    let word = 'Copied'
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      // Without a secure connection there is no clipboard: the person copies the selection.
      getSelection().selectAllChildren(fallback)
      word = 'Selected'
    }
    button.textContent = word
    say(word === 'Copied' ? 'Copied to the clipboard.' : 'Selected: copy it with the keyboard.')
    setTimeout(() => {
      if (button.textContent === word) button.textContent = label
    }, 2000)
  }
  const isShown = (one) => one.checkVisibility ? one.checkVisibility() : one.offsetParent !== null
  for (const button of all('.copy')) {
    button.addEventListener('click', () => {
      const code = all('pre', button.closest('figure')).find(isShown)
      copy(button, code.textContent, code)
    })
  }
  for (const button of all('.expand')) {
    button.addEventListener('click', () => {
      const isOpen = button.closest('figure').classList.toggle('whole')
      button.setAttribute('aria-pressed', String(isOpen))
      button.textContent = isOpen ? 'Collapse' : 'Expand'
    })
  }

  // Every field can be linked to.
  const nameOf = (row) => {
    const outer = row.parentElement.closest('li')
    const name = row.querySelector(':scope > code, :scope > a > code')?.textContent ?? ''
    return outer ? nameOf(outer) + '.' + name : name
  }
  for (const row of all('[data-kind] li:has(> code)')) {
    const kind = row.closest('[data-kind]').dataset.kind
    if (!row.id) {
      const id = row.closest('section').id + (kind === 'field' ? ':' : '.') + nameOf(row)
      if (!document.getElementById(id)) row.id = id
    }
    if (!row.id) continue
    const name = row.querySelector('code')
    const link = document.createElement('a')
    link.className = 'anchor'
    link.href = '#' + row.id
    name.replaceWith(link)
    link.append(name)
  }
  const reveal = (place) => {
    for (let one = place; one; one = one.parentElement) if (one.localName === 'details') one.open = true
    place.scrollIntoView({ block: place.localName === 'section' ? 'start' : 'center' })
  }
  const goToHash = () => {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)))
    if (place?.localName === 'li') reveal(place)
  }
  addEventListener('hashchange', goToHash)

  // Another problem of the same status: what it says stands in the table of problems.
  const paint = (code, text) =>
    code.replaceChildren(
      ...text.split(/("(?:[^"\\]|\\.)*"|\b\d+(?=,?\n))/).map((part, index, parts) => {
        if (index % 2 === 0) return part
        const span = document.createElement('span')
        span.className = !part.startsWith('"') ? 'n' : parts[index + 1].startsWith(':') ? 'k' : 's'
        span.textContent = part
        return span
      }),
    )
  for (const code of all('.panel pre:not([class]) code')) paint(code, code.textContent)
  for (const codes of all('.codes')) {
    codes.addEventListener('click', (event) => {
      const chip = event.target.closest('a')
      if (!chip || event.ctrlKey || event.metaKey || event.shiftKey) return
      event.preventDefault()
      const name = chip.textContent
      const [about, pre] = all('p, pre', chip.closest('.panel'))
      const code = pre.querySelector('code')
      const row = document.getElementById('problem-' + name)
      const { type, instance, request_id } = JSON.parse(code.textContent)
      const title = name[0].toUpperCase() + name.slice(1).replaceAll('_', ' ')
      const body = {
        type: type.replace(/[^/]*$/, name.replaceAll('_', '-')),
        title,
        status: Number(row.querySelector('small').textContent),
        code: name,
        detail: row.querySelector('td').firstChild.textContent,
        instance,
        request_id,
        ...JSON.parse(chip.dataset.more ?? '{}'),
      }
      paint(code, JSON.stringify(body, null, 2))
      about.replaceChildren(...row.querySelector('td span').cloneNode(true).childNodes)
      for (const one of all('a', codes)) one.toggleAttribute('aria-current', one === chip)
      chip.setAttribute('aria-current', 'true')
    })
  }

  // What the page shows of an endpoint, in the chosen language.
  const inline = (node) =>
    [...node.childNodes].map((one) =>
      one.localName === 'code' ? '`' + one.textContent + '`' : one.textContent
    ).join('')
  const rowsOf = (list, margin) =>
    [...list.children].flatMap((row) => {
      const [name, about, ...notes] = [':scope > a', ':scope > p', ':scope > small', ':scope > small + small']
        .map((one) => row.querySelector(one))
      const inner = row.querySelector(':scope > details > ul')
      const said = notes.filter(Boolean).map((one) => one.textContent).join(' · ')
      const head = name
        ? inline(name) + ' (' + said + '): ' + inline(about)
        : inline(row.querySelector('summary'))
      return [margin + '- ' + head, ...inner ? rowsOf(inner, margin + '  ') : []]
    })
  const markdownOf = (section) =>
    all('h3, .head > p:not(.line), .line > code, h4, .fields, figcaption > span, pre', section).flatMap(
      (one) => {
        const text = one.textContent
        if (one.localName === 'pre') return isShown(one) ? ['```', text, '```', ''] : []
        if (one.matches('ul')) return [...rowsOf(one, ''), '']
        if (one.matches('.line > code')) {
          return ['`' + one.parentElement.querySelector('.method').textContent + ' ' + text + '`', '']
        }
        if (one.localName === 'p') return [inline(one), '']
        return [(one.localName === 'h3' ? '## ' : '### ') + text, '']
      },
    ).join('\n')
  for (const link of all('.md')) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'md'
    button.textContent = 'Copy as Markdown'
    link.before(button)
    button.addEventListener('click', () => {
      const section = button.closest('section')
      copy(button, markdownOf(section), section)
    })
  }

  const bar = document.querySelector('.bar')
  const side = document.querySelector('.side')
  const links = new Map(all('a', side).map((link) => [document.getElementById(link.hash.slice(1)), link]))
  let current
  let currentTop = 0
  const follow = () => {
    const line = parseFloat(getComputedStyle(root).scrollPaddingTop) + 2
    const passed = [...links.keys()].filter((section) => section.getBoundingClientRect().top <= line)
    const section = passed.at(-1) ?? links.keys().next().value
    currentTop = section.getBoundingClientRect().top
    if (section === current) return
    links.get(current)?.removeAttribute('aria-current')
    const link = links.get(current = section)
    link.setAttribute('aria-current', 'location')
    const { top, bottom } = link.getBoundingClientRect()
    if (top < bar.offsetHeight || bottom > innerHeight) side.scrollTop += top - innerHeight / 2
  }
  let frame
  const followSoon = () => {
    cancelAnimationFrame(frame)
    frame = requestAnimationFrame(follow)
  }
  addEventListener('scroll', followSoon, { passive: true })
  addEventListener('resize', followSoon)
  follow()
  side.addEventListener('click', (event) => {
    if (event.target.closest('a') && side.matches(':popover-open')) side.hidePopover()
  })

  const languages = document.querySelector('.langs')
  const saved = document.getElementById('in-' + recall('language'))
  if (saved) saved.checked = true
  const showLanguage = (label) => {
    languages.scrollLeft = label.offsetLeft - (languages.offsetWidth - label.offsetWidth) / 2
  }
  showLanguage(languages.querySelector(':checked + label'))
  languages.addEventListener('change', ({ target }) => {
    remember('language', target.id.slice(3))
    showLanguage(target.labels[0])
    // What is being read stays where it is.
    scrollBy({ top: current.getBoundingClientRect().top - currentTop, behavior: 'instant' })
  })

  const dialog = document.querySelector('.search')
  const query = dialog.querySelector('input')
  const list = dialog.querySelector('ul')
  let entries
  let chosen = -1
  const titleOf = (place) => place.closest('section').querySelector('h1, h2, h3').textContent
  const collect = () => [
    ...all('main section[id]').map((place) => ({
      place,
      name: titleOf(place),
      about: place.querySelector('.line')?.firstElementChild.textContent.concat(
        ' ',
        place.querySelector('.line code').textContent,
      ) ?? 'Guide',
      words: ' ' + (place.dataset.words ?? ''),
      text: all('.head > p, .head > ul', place).map((one) => one.textContent).join(' '),
    })),
    ...all('main [data-kind] li:has(> a)').map((place) => ({
      place,
      name: nameOf(place),
      about: place.closest('[data-kind]').dataset.kind + ' · ' + titleOf(place),
      text: place.querySelector(':scope > p').textContent,
    })),
    ...all('main tbody tr').map((place) => ({
      place,
      name: place.querySelector('code').textContent,
      about: place.querySelector('small').textContent + ' · ' + titleOf(place),
      text: place.querySelector('td').textContent,
    })),
    ...all('.langs label').map((place) => ({
      place,
      name: place.textContent,
      about: 'Show all samples in this language',
      text: '',
    })),
  ]
  const choose = (index) => {
    const options = all('li', list)
    options[chosen]?.setAttribute('aria-selected', 'false')
    chosen = options.length === 0 ? -1 : (index + options.length) % options.length
    options[chosen]?.setAttribute('aria-selected', 'true')
    options[chosen]?.scrollIntoView({ block: 'nearest', behavior: 'instant' })
    query.setAttribute('aria-activedescendant', options[chosen]?.id ?? '')
  }
  let found = []
  const find = () => {
    const phrase = query.value.toLowerCase().trim()
    const has = (text, word) => text.toLowerCase().includes(word)
    const rank = ({ name, about, words = '' }) => {
      if (phrase && has(words, ' ' + phrase) || name.toLowerCase() === phrase) return 0
      if (has(name, phrase)) return name.toLowerCase().startsWith(phrase) ? 1 : 2
      return has(about, phrase) ? 3 : 4
    }
    found = entries
      .filter(({ name, about, words, text }) =>
        phrase.split(/\s+/).every((word) => has([name, about, words, text].join(' '), word))
      )
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, 40)
    list.replaceChildren(...found.map(({ name, about }, index) => {
      const option = document.createElement('li')
      const note = document.createElement('small')
      option.id = 'found-' + index
      option.setAttribute('role', 'option')
      option.setAttribute('aria-selected', 'false')
      note.textContent = about
      option.append(name, note)
      return option
    }))
    choose(0)
    document.getElementById('page-found').textContent = found.length === 0
      ? 'Nothing found.'
      : found.length + ' found.'
  }
  const open = () => {
    if (dialog.open) return
    entries ??= collect()
    query.value = ''
    find()
    dialog.showModal()
  }
  const go = (index) => {
    const place = found[index]?.place
    if (!place) return
    dialog.close()
    if (place.localName === 'label') return place.click()
    history.pushState(null, '', '#' + place.closest('[id]').id)
    place.tabIndex = -1
    reveal(place)
    place.focus({ preventScroll: true })
  }
  query.addEventListener('input', find)
  list.addEventListener('click', (event) => go(all('li', list).indexOf(event.target.closest('li'))))
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close()
  })
  dialog.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) choose(chosen + step)
    else if (event.key === 'Enter' && !event.isComposing) go(chosen)
    else return
    event.preventDefault()
  })
  const finder = document.querySelector('.find')
  finder.addEventListener('click', open)
  addEventListener('keydown', (event) => {
    const isWriting = event.target.closest('input:not([type=radio]), select')
    const isSlash = event.key === '/' && !isWriting && !event.ctrlKey && !event.metaKey && !event.altKey
    const isK = event.key?.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)
    if (!isSlash && !isK) return
    event.preventDefault()
    open()
  })
  addEventListener('beforeprint', () => {
    for (const one of all('details')) one.open = true
  })
  goToHash()
})
