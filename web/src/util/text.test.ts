import { describe, expect, test } from 'vitest'

import { leadsTo } from '../api/apps'
import { changeImageCommand, changeUserCommand, createCommand, limitJobCommand } from './cli-command'
import { formatAgo, formatBytes, GIB, MIB } from './format'
import { LINE_LIMIT, LogLines, PART_LINES, partAround, plainLine } from './log-lines'
import { hostForPrograms, originForPrograms } from './own-address'
import { paths, readAppHost, safeNext } from './path-builder'
import { quoteWord, splitWords } from './shell-words'
import { jetbrainsLink, knownHostsLine, pairFile, sshCommand, sshTarget, vscodeLink } from './ssh-lines'

describe('splitWords', () => {
  const check = (text: string, expected: string[] | null) =>
    test(text, () => expect(splitWords(text)).toEqual(expected))
  check('', [])
  check('  python  train.py ', ['python', 'train.py'])
  check(`sh -c 'echo "a b"'`, ['sh', '-c', 'echo "a b"'])
  check('echo "a \\"b\\" $HOME"', ['echo', 'a "b" $HOME'])
  check('a\\ b c', ['a b', 'c'])
  check(`a''b ''`, ['ab', ''])
  check('echo "open', null)
})

test('a quoted word is read back as it was', () => {
  for (const word of ['', 'plain', 'a b', `it's`, '$HOME', '"', '\\', '中文', 'a\nb']) {
    expect(splitWords(quoteWord(word)), word).toEqual([word])
  }
})

test('a change is a command for each thing that is changed', () => {
  expect(limitJobCommand('digits', 5_400)).toBe('berth change digits --time-limit 90m')
  expect(limitJobCommand('digits', 0)).toBe('berth change digits --time-limit 0')
  expect(changeUserCommand('bob', { role: 'leader', group: 'vision' })).toBe(
    'berth user role bob leader\nberth user group bob vision',
  )
  expect(changeImageCommand('torch:v1', { share: 'group', name: 'net', platform: false })).toBe(
    'berth image share torch:v1 group\nberth image promote torch:v1 --undo\nberth image mv torch:v1 net:',
  )
  expect(changeImageCommand('torch:v1', { tag: 'v2' })).toBe('berth image mv torch:v1 v2')
  // There is no command for it.
  expect(changeImageCommand('torch:v1', { message: 'for the paper' })).toBeUndefined()
})

test('the command says what the form says', () => {
  const command = createCommand({
    name: 'train_1',
    image: 'localhost/berth/base:latest',
    cpus: 1.5,
    memory_bytes: 8 * GIB,
    shm_bytes: 512 * MIB,
    gpus: 2,
    env: { GREETING: 'hello you' },
    secrets: [
      { name: 'HF_TOKEN', env: 'HF_TOKEN' },
      { name: 'hub', env: 'HUB' },
      { name: 'key.pem', file: true },
    ],
    command: ['python', 'train.py', 'a b'],
  })
  expect(command).toBe(
    `berth create train_1 --image localhost/berth/base:latest --cpus 1.5 --memory 8G --shm 512M --gpus 2 --env 'GREETING=hello you' --secret HF_TOKEN --secret hub=HUB --secret key.pem:file -- python train.py 'a b'`,
  )
})

describe('formatBytes', () => {
  const check = (bytes: number, expected: string) =>
    test(expected, () => expect(formatBytes(bytes)).toBe(expected))
  check(0, '0 B')
  check(1023, '1023 B')
  check(1024, '1 KiB')
  check(1024 * 1024 - 1, '1 MiB')
  check(1.5 * GIB, '1.5 GiB')
  check(298 * MIB, '298 MiB')
})

test('formatAgo speaks the language', () => {
  const now = new Date('2026-01-02T00:00:00Z')
  expect(formatAgo(new Date('2026-01-01T22:59:00Z'), now, 'en')).toBe('1 hour ago')
  expect(formatAgo(new Date('2026-01-01T23:59:50Z'), now, 'en')).toBeNull()
  expect(formatAgo(new Date('2026-01-01T23:55:00Z'), now, 'zh-CN')).toContain('5')
})

describe('plainLine', () => {
  const check = (raw: string, expected: string) => test(expected, () => expect(plainLine(raw)).toBe(expected))
  check('\u001b[1;31mred\u001b[0m text', 'red text')
  check('\u001b]0;title\u0007after title', 'after title')
  check('10%\r50%\r100%', '100%')
  check('windows line\r', 'windows line')
})

test('log lines come whole however they are cut, and only the last are kept', () => {
  const lines = new LogLines()
  lines.push('one\ntw')
  lines.push('o\nthree')
  expect(lines.text()).toBe('one\ntwo\nthree')
  lines.push('\n'.repeat(LINE_LIMIT))
  expect(lines.text().split('\n')).toHaveLength(LINE_LIMIT)
  expect(lines.cut).toBe(true)
})

test('a line of a long log is shown with its surroundings, and its neighbours with the same', () => {
  expect(partAround(1)).toBe(1)
  expect(partAround(499)).toBe(1)
  for (const line of [1_500, 12_345, 12_346, 20_000]) {
    const from = partAround(line)
    expect(line - from).toBeGreaterThanOrEqual(500)
    expect(from + PART_LINES - line).toBeGreaterThan(500)
  }
  expect(partAround(12_345)).toBe(partAround(12_346))
})

describe('safeNext stays on this site', () => {
  const check = (next: string | undefined, expected: string) =>
    test(String(next), () => expect(safeNext(next)).toBe(expected))
  check('/instances/a?x=1', '/instances/a?x=1')
  check('//evil.example', '/')
  check('/\\evil.example', '/')
  check('https://evil.example', '/')
  check('/login?next=/login', '/')
  check(undefined, '/')
})

test('names are escaped in paths', () => {
  expect(paths.instance('a/b', 'logs')).toBe('/instances/a%2Fb/logs')
  expect(paths.instance({ id: 'ins_1', name: 'train' })).toBe('/instances/train')
  // The form is at `/new`, in whatever case.
  expect(paths.instance({ id: 'ins_1', name: 'New' }, 'logs')).toBe('/instances/ins_1/logs')
  expect(paths.job({ id: 'job_1', name: 'new' })).toBe('/jobs/job_1')
})

describe('the address of an app', () => {
  const check = (host: string, expected: ReturnType<typeof readAppHost>) =>
    test(host, () => expect(readAppHost(host)).toEqual(expected))
  check('lab--train--alice', { app: 'lab', instance: 'train', user: 'alice' })
  check('3000--train-1--a--b', { app: '3000', instance: 'train-1', user: 'a--b' })
  check('lab--0190f2c3', { app: 'lab', instance: 'ins_0190f2c3' })
  for (const wrong of ['', 'lab', 'lab--', '--train--alice', 'lab----alice', 'lab--../me--a', 'a/b--c--d']) {
    check(wrong, null)
  }
})

describe('an entry is followed only to the app that was asked for', () => {
  const check = (entry: string, host: string, expected: boolean) =>
    test(entry, () => expect(leadsTo(entry, host)).toBe(expected))
  const host = 'lab--train--alice'
  check('http://lab--train--alice.localhost:8080/.berth/enter?ticket=x', host, true)
  check('http://localhost:8081/alice/train/lab/.berth/enter?ticket=x', host, true)
  check('http://localhost:8081/-/ins_0190f2c3/lab/.berth/enter?ticket=x', 'lab--0190f2c3', true)
  check('http://lab--train--bob.localhost:8080/.berth/enter?ticket=x', host, false)
  check('http://localhost:8081/bob/train/lab/.berth/enter?ticket=x', host, false)
  check('http://evil.example/lab--train--alice', host, false)
})

describe('what an SSH client is told', () => {
  const door = { port: 2222, host_key: 'ssh-ed25519 AAAA', fingerprint: 'SHA256:x' }
  const target = sshTarget(door, 'berth.example.org', 'alice', 'train-1')
  test('the command names the user, the instance and the port', () => {
    expect(sshCommand(target)).toBe('ssh -p 2222 alice+train-1@berth.example.org')
    expect(sshCommand({ ...target, port: 22 })).toBe('ssh alice+train-1@berth.example.org')
  })
  test('the host of the door goes before that of the console', () => {
    expect(sshTarget({ ...door, host: 'ssh.example.org' }, 'berth.example.org', 'a', 'b').host).toBe(
      'ssh.example.org',
    )
  })
  test('links of editors escape the login', () => {
    expect(vscodeLink('vscode', target, '/userhome')).toBe(
      'vscode://vscode-remote/ssh-remote+alice%2Btrain-1%40berth.example.org%3A2222/userhome',
    )
    expect(jetbrainsLink(target, '/userhome')).toContain('user=alice%2Btrain-1')
  })
  test('a line of known_hosts names the port', () => {
    expect(knownHostsLine(target, door.host_key)).toBe('[berth.example.org]:2222 ssh-ed25519 AAAA')
  })
  test('a file for a key has a name that needs no quotes', () => {
    expect(pairFile('我的 Laptop')).toBe('berth-laptop')
    expect(pairFile('berth')).toBe('berth-key')
  })
})

describe('the address for programs', () => {
  test('is one that they can find', () => {
    expect(hostForPrograms('berth.localhost')).toBe('localhost')
    expect(hostForPrograms('berth.example.org')).toBe('berth.example.org')
    const at = (url: string) => originForPrograms(new URL(url))
    expect(at('http://berth.localhost:8080')).toBe('http://localhost:8080')
    expect(at('https://berth.example.org')).toBe('https://berth.example.org')
    expect(at('http://10.0.0.5:8080')).toBe('http://10.0.0.5:8080')
  })
})
