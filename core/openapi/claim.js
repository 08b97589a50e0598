const copy = document.getElementById('copy')
const key = document.getElementById('key')
const status = document.querySelector('[role=status]')

if (copy) {
  copy.hidden = false
  copy.addEventListener('click', async () => {
    try {
      // Pages without TLS have no clipboard.
      await navigator.clipboard.writeText(key.textContent)
      status.textContent = 'Copied.'
    } catch {
      getSelection().selectAllChildren(key)
      status.textContent = 'The key is selected: copy it with your keyboard or menu.'
    }
  })
}
