// deno-lint-ignore-file no-var
/* ES5 on purpose: this is what an old Node reads before it meets syntax it does not know. */
var fs = require('fs')
var path = require('path')

var wanted = [22, 19]
var found = process.versions.node.split('.').map(Number)
var tooOld = found[0] < wanted[0] || (found[0] === wanted[0] && found[1] < wanted[1])
var missing = !fs.existsSync(path.join(__dirname, '..', 'node_modules', 'valibot'))

function refuse(sentence) {
  console.error(sentence)
  process.exit(2)
}

if (missing) refuse('The dependencies are not installed: run "npm ci" first.')
if (tooOld) {
  refuse(
    'Node ' + wanted.join('.') + ' or newer is needed, and this is ' + process.versions.node +
      ': "npm ci" installs one for npm scripts unless optional dependencies are left out.',
  )
}
