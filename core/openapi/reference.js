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
  const status = document.getElementById('status')
  const say = (text) => {
    status.textContent = ''
    setTimeout(() => {
      status.textContent = text
    }, 50)
  }

  const theme = document.getElementById('theme')
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

  for (const button of all('.copy')) {
    let timer
    button.addEventListener('click', async () => {
      const code = all('pre', button.closest('figure')).find((one) => one.offsetParent !== null)
      let word = 'Copied'
      try {
        await navigator.clipboard.writeText(code.textContent)
      } catch {
        // Without a secure connection there is no clipboard: the person copies the selection.
        getSelection().selectAllChildren(code)
        word = 'Selected'
      }
      button.textContent = word
      say(word === 'Copied' ? 'Copied to the clipboard.' : 'Selected: copy it with the keyboard.')
      clearTimeout(timer)
      timer = setTimeout(() => {
        button.textContent = 'Copy'
      }, 2000)
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
  const nameOf = (row) => {
    const outer = row.parentElement.closest('li')
    const name = row.querySelector(':scope > code')?.textContent ?? ''
    return outer ? nameOf(outer) + '.' + name : name
  }
  const titleOf = (place) => place.closest('section').querySelector('h1, h2, h3').textContent
  const collect = () => [
    ...all('main section[id]').map((place) => ({
      place,
      name: titleOf(place),
      about: place.querySelector('.line')?.textContent ?? 'Guide',
      text: all('.text > p, .text > ul:not(.fields)', place).map((one) => one.textContent).join(' '),
    })),
    ...all('main [data-kind] li').filter((place) => place.querySelector(':scope > code')).map((place) => ({
      place,
      name: nameOf(place),
      about: place.closest('[data-kind]').dataset.kind + ' · ' + titleOf(place),
      text: place.querySelector(':scope > p').textContent,
    })),
    ...all('main tbody tr').map((place) => ({
      place,
      name: place.querySelector('code').textContent,
      about: titleOf(place),
      text: place.querySelector('td').textContent,
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
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean)
    const has = (text, word) => text.toLowerCase().includes(word)
    const [first = ''] = words
    const rank = ({ name, about }) => {
      if (has(name, first)) return name.toLowerCase().startsWith(first) ? 0 : 1
      return has(about, first) ? 2 : 3
    }
    found = entries
      .filter(({ name, about, text }) => words.every((word) => has(name + ' ' + about + ' ' + text, word)))
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
    document.getElementById('found').textContent = found.length === 0
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
    for (let one = place; one; one = one.parentElement) if (one.localName === 'details') one.open = true
    history.pushState(null, '', '#' + place.closest('[id]').id)
    place.tabIndex = -1
    place.focus({ preventScroll: true })
    place.scrollIntoView({ block: place.localName === 'section' ? 'start' : 'center' })
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
})
