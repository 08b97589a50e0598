/** Searches without loading the page anew. Without this script, the form and the link do that. */
customElements.define(
  'partner-widget',
  class extends HTMLElement {
    #pending = new AbortController()
    #timer

    /** The page without its query. Its path alone, such as `//other.example/`, would lead to another host. */
    get #here() {
      return location.origin + location.pathname
    }

    connectedCallback() {
      this.addEventListener('submit', (event) => {
        event.preventDefault()
        this.#search()
      })
      this.addEventListener('input', () => {
        clearTimeout(this.#timer)
        this.#timer = setTimeout(() => this.#search(), 250)
      })
      this.addEventListener('click', (event) => {
        const link = event.target.closest('[rel=next]')
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return
        event.preventDefault()
        this.#load(link.search, link)
      })
      this.#dropBrokenImages()
    }

    #search() {
      clearTimeout(this.#timer)
      const form = this.querySelector('form')
      if (!form.checkValidity()) return
      const filled = [...new FormData(form)].filter(([, value]) => value.trim())
      const query = filled.length > 0 ? `?${new URLSearchParams(filled)}` : ''
      history.replaceState(history.state, '', this.#here + query)
      this.#load(query)
    }

    /** Shows what the server renders for a query; if a link asked for more, after what is there. */
    async #load(query, link) {
      this.#pending.abort()
      const { signal } = this.#pending = new AbortController()
      this.ariaBusy = 'true'
      try {
        const response = await fetch(this.#here + query, { signal })
        const text = await response.text()
        const fresh = new DOMParser().parseFromString(text, 'text/html').querySelector('partner-widget')
        if (response.status >= 500) throw new Error(response.statusText)
        this.#show(fresh, link)
        this.#dropBrokenImages()
      } catch {
        const status = this.querySelector('[role=status]')
        if (!signal.aborted && status) status.textContent = status.dataset.failure
      }
      if (!signal.aborted) this.ariaBusy = null
    }

    #show(fresh, link) {
      const [results, status] = ['.partner-results', '[role=status]'].map((part) => this.querySelector(part))
      if (link) link.remove()
      else results.replaceChildren()
      const list = fresh.querySelector('.partner-results ul')
      results.append(...fresh.querySelector('.partner-results').childNodes)
      status.textContent = fresh.querySelector('[role=status]').textContent.trim()
      if (link && list) {
        list.tabIndex = -1
        list.focus()
      }
    }

    /** Behind each logo is the first letter of the name. */
    #dropBrokenImages() {
      for (const image of this.querySelectorAll('img')) image.decode().catch(() => image.remove())
    }
  },
)
