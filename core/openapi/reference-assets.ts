/** Light and dark, one column on phones and two on wider screens. */
export const REFERENCE_STYLE = `
:root{color-scheme:light dark;--paper:#fdfdfc;--panel:#f4f6f4;--raised:#fff;--ink:#19211e;--soft:#54605b;--line:#dfe5e1;
--accent:#0a6653;--tint:#e4f2ed;--post:#8a4a06;--post-tint:#faeedd;--string:#0a6653;--figure:#96400f;--name:#294a86;
--shadow:0 1px 2px #19211e0d,0 4px 16px #19211e0a;
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans",sans-serif;
--mono:ui-monospace,"SF Mono","Cascadia Code","Segoe UI Mono",Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){:root{--paper:#0f1412;--panel:#161d1a;--raised:#1a221f;--ink:#e4ebe7;--soft:#9cada5;
--line:#29342f;--accent:#72d8bb;--tint:#15312a;--post:#f2b877;--post-tint:#33240f;--string:#8cdcc3;--figure:#f3b48b;
--name:#a8c5ff;--shadow:none}}
*{box-sizing:border-box}
html{scroll-padding-top:1.5rem;-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.65 var(--sans);overflow-wrap:break-word;
-webkit-font-smoothing:antialiased}
a{color:var(--accent);text-decoration-thickness:1px;text-underline-offset:.2em}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:1rem;top:-6rem;z-index:2;padding:.6rem 1rem;border-radius:0 0 8px 8px;
background:var(--accent);color:var(--paper);font-weight:600}
.skip:focus{top:0}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
code,pre,kbd{font-family:var(--mono);font-size:.875em;font-variant-ligatures:none}
:not(pre)>code{padding:.1em .35em;border-radius:5px;background:var(--panel);overflow-wrap:anywhere}
h1,h2,h3,h4{line-height:1.25;letter-spacing:-.015em;text-wrap:balance;font-weight:650}
h1{font-size:clamp(2.1rem,1.6rem + 2.4vw,3rem);letter-spacing:-.03em;margin:0 0 .75rem}
h2{font-size:clamp(1.5rem,1.35rem + .7vw,1.85rem);letter-spacing:-.022em;margin:0 0 1rem}
h3{font-size:1.25rem;margin:0 0 .6rem}
h4{font-size:.8125rem;letter-spacing:.045em;text-transform:uppercase;color:var(--soft);margin:1.75rem 0 .6rem}
p{margin:0 0 1rem;text-wrap:pretty;max-width:68ch}
ul,ol{margin:0 0 1rem;padding-left:1.3rem;max-width:66ch}
li{margin:.3rem 0}
li::marker{color:var(--soft)}
.bar{display:flex;align-items:center;gap:.65rem;padding:.9rem 1.25rem;border-bottom:1px solid var(--line)}
.bar svg{flex:none;color:var(--accent)}
.bar a{display:flex;align-items:center;gap:.6rem;color:inherit;font-weight:650;letter-spacing:-.01em;text-decoration:none}
.pill{margin-left:auto;padding:.12rem .6rem;border:1px solid var(--line);border-radius:99px;color:var(--soft);
font:.8125rem/1.5 var(--mono);white-space:nowrap}
main{padding:2.25rem 1.25rem 4rem;min-width:0}
main>section{padding-bottom:3.25rem;margin-bottom:3.25rem;border-bottom:1px solid var(--line)}
main>section:last-of-type{border:0;margin-bottom:0}
.lead{font-size:1.15rem;line-height:1.6;color:var(--soft);max-width:60ch;margin-bottom:1.75rem}
.cards{display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr));margin:0;padding:0;
max-width:none;list-style:none}
.cards li{margin:0}
.cards>li,.note{padding:.95rem 1.1rem;border:1px solid var(--line);border-radius:12px;background:var(--raised);
box-shadow:var(--shadow)}
.cards strong{display:block;font-size:.8125rem;color:var(--soft);font-weight:500}
.note{border-left:4px solid var(--accent);margin:0 0 1.25rem;max-width:68ch}
.note p:last-child{margin:0}
.op{padding-top:2.5rem;margin-top:2.5rem;border-top:1px solid var(--line)}
.group+.group{margin-top:3.5rem}
.group>.eyebrow{margin:0 0 1.25rem}
.group>.op:first-of-type{border:0;padding:0;margin:0}
.eyebrow{color:var(--soft)}
.eyebrow strong{color:var(--ink);font-weight:650;text-transform:capitalize}
.line{display:flex;flex-wrap:wrap;align-items:center;gap:.4rem .7rem;margin:0 0 .9rem;padding:.6rem .8rem;border-radius:10px;
background:var(--panel);max-width:none}
.line code{padding:0;background:none;font-size:.9375rem}
.method{padding:.08rem .5rem;border-radius:6px;background:var(--tint);color:var(--accent);
font:650 .8125rem/1.6 var(--mono);letter-spacing:.02em}
.method.post{background:var(--post-tint);color:var(--post)}
.tags{display:flex;flex-wrap:wrap;gap:.35rem 1.4rem;margin:0 0 1rem;font-size:.9375rem}
.tags div{display:flex;flex-wrap:wrap;gap:.1rem .45rem}
.tags dt{color:var(--soft)}
.tags dd{margin:0}
table{width:100%;border-collapse:collapse;margin:0 0 1.25rem;font-size:.9375rem;line-height:1.5}
th,td{padding:.65rem .75rem .65rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th:last-child,td:last-child{padding-right:0}
thead th{font-size:.8125rem;font-weight:600;color:var(--soft)}
tbody th{font-weight:400;width:41%}
@media (min-width:40rem){tbody th{width:34%}}
td small,th small{display:block;color:var(--soft);font-size:.8125rem;line-height:1.5}
.need{color:var(--post);font-weight:600}
figure{margin:0 0 1.25rem;border:1px solid var(--line);border-radius:12px;background:var(--panel);overflow:hidden}
figcaption{display:flex;align-items:center;min-height:2.6rem;padding:0 .5rem 0 1rem;border-bottom:1px solid var(--line);
color:var(--soft);font-size:.8125rem}
pre{margin:0;padding:.95rem 1rem;overflow-x:auto;font-size:.8125rem;line-height:1.65;tab-size:2}
pre:focus-visible{outline-offset:-3px;border-radius:0 0 12px 12px}
pre code{font-size:inherit}
.tall{max-height:26rem;overflow:auto}
.k{color:var(--name)}.s{color:var(--string)}.n{color:var(--figure)}
.copy{margin-left:auto;padding:.25rem .7rem;border:1px solid transparent;border-radius:7px;background:none;color:var(--accent);
font:600 .8125rem/1.5 var(--sans);cursor:pointer}
.copy:hover{background:var(--tint);border-color:var(--line)}
details{margin:0 0 .5rem}
details[open]{margin-bottom:1.5rem}
details>table,details>.codes{margin-top:.5rem}
summary{cursor:pointer;color:var(--accent);font-weight:600;font-size:.9375rem;padding:.3rem 0}
summary:hover{text-decoration:underline;text-underline-offset:.2em}
.codes{display:flex;flex-wrap:wrap;gap:.4rem;margin:0;padding:0;list-style:none;max-width:none}
.codes li{margin:0}
.codes a{display:block;padding:.12rem .55rem;border:1px solid var(--line);border-radius:7px;color:var(--ink);
text-decoration:none;font:.8125rem/1.6 var(--mono)}
.codes a:hover{border-color:var(--accent);color:var(--accent)}
.codes b{color:var(--soft);font-weight:400}
:target>th{box-shadow:inset 3px 0 0 var(--accent);padding-left:.75rem}
nav ul{list-style:none;margin:0;padding:0}
nav li{margin:0}
nav a{display:block;padding:.24rem .7rem;border-radius:7px;color:var(--soft);text-decoration:none;font-size:.9063rem;
line-height:1.45}
nav a:hover{color:var(--ink);background:var(--panel)}
nav a[aria-current]{color:var(--accent);background:var(--tint);font-weight:600}
nav ul ul{margin:.15rem 0 .5rem .7rem;border-left:1px solid var(--line);padding-left:.35rem}
.brief{margin:0;padding:.35rem 1.25rem;border-bottom:1px solid var(--line);background:var(--panel)}
.brief nav{padding:.25rem 0 .75rem}
.side{display:none}
footer{padding:1.5rem 1.25rem 2.5rem;border-top:1px solid var(--line);color:var(--soft);font-size:.875rem}
footer p{margin:0}
@media (min-width:64rem){
.brief{display:none}
.bar{padding:1rem 2rem}
.frame{display:grid;grid-template-columns:17.5rem minmax(0,1fr);max-width:82rem;margin:0 auto}
.side{display:block;position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto;padding:2.25rem 1rem 3rem 1.3rem;
scrollbar-width:thin}
main{padding:3rem 2.5rem 5rem 3.25rem;border-left:1px solid var(--line)}
main>*{max-width:52rem}
footer{padding-inline:2rem}}
@media print{.brief,.side,.copy,.skip{display:none!important}.frame{display:block}.tall{max-height:none}}
`

/**
 * Optional enhancements: commands show the actual origin, code can be copied, and the table of contents highlights the
 * current section.
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
    say(word === 'Copied' ? 'Copied to the clipboard.' : 'The browser did not allow copying.');
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
