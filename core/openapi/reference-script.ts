/**
 * What the reference page does where scripts run; it is whole without. Commands name the host that the page came
 * from, code can be copied, and the table of contents tells where one is.
 */
export const REFERENCE_SCRIPT = `
'use strict';
if (/^https?:/.test(location.origin)) {
  for (const place of document.querySelectorAll('.origin')) place.textContent = location.origin;
}
const status = document.getElementById('status');
const say = (text) => {
  status.textContent = '';
  setTimeout(() => { status.textContent = text; }, 50);
};
const copy = async (block) => {
  const text = block.textContent;
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const selection = getSelection();
  selection.selectAllChildren(block);
  const done = document.execCommand('copy');
  selection.removeAllRanges();
  if (!done) throw new Error('not copied');
};
for (const button of document.querySelectorAll('.copy')) {
  button.hidden = false;
  let timer;
  button.addEventListener('click', async () => {
    let word = 'Copied';
    try {
      await copy(document.getElementById(button.dataset.of));
    } catch {
      word = 'Not copied';
    }
    button.textContent = word;
    say(word === 'Copied' ? 'Copied to the clipboard.' : 'The browser did not let this be copied.');
    clearTimeout(timer);
    timer = setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
}
const brief = document.querySelector('.brief');
for (const link of brief.querySelectorAll('a')) link.addEventListener('click', () => { brief.open = false; });
const links = new Map([...document.querySelectorAll('.side a')].map((link) => [link.hash.slice(1), link]));
const inView = new Set();
let current;
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) isIntersecting ? inView.add(target) : inView.delete(target);
  const last = [...inView].sort((a, b) => a.compareDocumentPosition(b) & 4 ? -1 : 1).at(-1);
  const link = last && links.get(last.id);
  if (!link || link === current) return;
  current?.removeAttribute('aria-current');
  link.setAttribute('aria-current', 'location');
  link.scrollIntoView({ block: 'nearest' });
  current = link;
}, { rootMargin: '-10% 0px -80% 0px' });
for (const id of links.keys()) {
  const section = document.getElementById(id);
  if (section) observer.observe(section);
}
`
