// deno-lint-ignore-file no-var
/*
 * Refuses a Node that is too old. `node test/guard.cjs bring [VERSION]` first installs the Node of test/node, if the one
 * that runs this is older than VERSION, or in any case: .npmrc leaves workspaces out of `npm ci`.
 *
 * ES5 on purpose: this is what an old Node reads before it meets syntax it does not know.
 */
var spawnSync = require('child_process').spawnSync
var fs = require('fs')
var path = require('path')

var root = path.join(__dirname, '..')
var packages = path.join(root, 'node_modules')

function isOlderThan(version) {
  var least = version.split('.').map(Number)
  var found = process.versions.node.split('.').map(Number)
  return found[0] < least[0] || (found[0] === least[0] && found[1] < least[1])
}

function refuse(sentence) {
  console.error(sentence)
  process.exit(2)
}

function bring() {
  var npm = [
    process.env.npm_execpath,
    'install',
    '--workspaces',
    '--no-save',
    '--ignore-scripts',
    '--loglevel=error',
  ]
  var ended = spawnSync(process.execPath, npm, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  if (ended.status !== 0) refuse('Node could not be installed.')
  if (!fs.existsSync(packages)) return // npm ci --dry-run
  var link = path.join(packages, '.bin', 'node')
  fs.readdirSync(packages).forEach(function (name) {
    if (!/^node-(bin-)?(darwin|linux|win)-/.test(name)) return
    // npm 10 does not link it.
    if (process.platform !== 'win32' && !fs.existsSync(link)) {
      fs.symlinkSync(path.join('..', name, 'bin', 'node'), link)
    }
    // Headers and manuals are a third of what the package has.
    fs.rmSync(path.join(packages, name, 'include'), { recursive: true, force: true })
    fs.rmSync(path.join(packages, name, 'share'), { recursive: true, force: true })
  })
}

var wanted = process.argv[3]
var isNewEnough = wanted !== undefined && !isOlderThan(wanted)
if (process.argv[2] === 'bring') {
  if (!isNewEnough && !fs.existsSync(path.join(packages, 'partner-api-node'))) bring()
} else if (!fs.existsSync(path.join(packages, 'valibot'))) {
  refuse('The dependencies are not installed: run "npm ci" first.')
} else if (isOlderThan('22.19')) {
  refuse(
    'Node 22.19 or newer is needed, and this is ' + process.versions.node +
      ': "npm ci" installs one for npm scripts unless scripts or optional dependencies are left out.',
  )
}
