const copy = document.getElementById('copy')
const key = document.getElementById('key')
const status = document.querySelector('[role=status]')

// A second click would get the answer that the link is used, in place of the key.
document.forms[0]?.addEventListener('submit', ({ submitter }) => submitter.disabled = true)

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
