// The settings of VS Code for a user who has none yet, written before it starts: without the side bar and the buttons
// of an assistant, which is not among these tools. Whoever has settings keeps them as they are.
'use strict'
const { mkdirSync, writeFileSync } = require('node:fs')
const { homedir } = require('node:os')
const { dirname, join } = require('node:path')

const settings = {
  'chat.disableAIFeatures': true,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
}
const data = process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share')
const file = join(data, 'code-server', 'User', 'settings.json')
try {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(settings, null, 2)}\n`, { flag: 'wx' })
} catch {
  // There are some, or this is no place to keep any.
}
