import { parse } from 'yaml'
import { describe, expect, test } from 'vitest'

import {
  fieldAt,
  professionalCount,
  readJob,
  renamed,
  roleNames,
  startingFile,
  withGpus,
  withoutRole,
  withRole,
  writeJob,
  written,
} from './submit-job'

const FILE = `berth: 1
# for the paper
name: finetune
image: localhost/berth/base:latest
memory: 8G
time_limit: 1h30m
retries: after-failure
env:
  SEED: 7
  VERSION: 1.10
mounts:
  - from: datasets/imagenet
    to: /data
command: |
  set -e
  python train.py
`

function read(file: string) {
  const values = readJob(file)
  if (values === null) throw new Error('the form cannot show it')
  return values
}

/** What the file means after one field was changed in the form. */
function changed(file: string, change: Partial<ReturnType<typeof read>>): string {
  const values = read(file)
  return writeJob(file, values, { ...values, ...change })
}

test('the form shows what the file says', () => {
  expect(read(FILE)).toMatchObject({
    name: 'finetune',
    memoryGib: 8,
    limitHours: 1.5,
    retries: 'after-failure',
    command: 'set -e\npython train.py\n',
    env: [
      { key: 'SEED', value: '7' },
      { key: 'VERSION', value: '1.10' },
    ],
    gpus: '',
  })
})

describe('what is changed in the form', () => {
  test('is all that changes in the file', () => {
    expect(changed(FILE, { gpus: 2 })).toBe(`${FILE}gpus: 2\n`)
    expect(changed(FILE, { name: 'again' })).toBe(FILE.replace('finetune', 'again'))
  })

  test('leaves the file when it is emptied', () => {
    expect(parse(changed(FILE, { limitHours: '', env: [] }))).not.toHaveProperty('time_limit')
  })

  const says = (change: Partial<ReturnType<typeof read>>, expected: object) =>
    test(JSON.stringify(change), () => expect(parse(changed(FILE, change))).toMatchObject(expected))
  says({ memoryGib: 1.5 }, { memory: '1536M' })
  says({ shmGib: 2 }, { shm: '2G' })
  says({ keepOnFailure: true }, { keep_on_failure: true })
  says({ limitHours: 2 }, { time_limit: '2h' })
  says({ limitHours: 0.25 }, { time_limit: '15m' })
  says({ ports: 'http, tensorboard' }, { ports: [{ label: 'http' }, { label: 'tensorboard' }] })
  says({ env: [{ id: 1, key: 'A', value: '007' }] }, { env: { A: '007' } })
})

describe('what the form does not show', () => {
  const file = `berth: 1
image: a
mounts:
  - from: datasets/imagenet # shared
    to: /data
    read_only: true
ports:
  - label: http
    begin_at: 8080
    count: 2
succeed_after: never
`

  const stays = (change: Partial<ReturnType<typeof read>>, expected: object) =>
    test(`stays with ${JSON.stringify(change)}`, () => {
      const after = changed(file, change)
      expect(parse(after)).toEqual({ ...parse(file), ...expected })
      expect(after).toContain('# shared')
    })
  const [mount, port] = [
    { from: 'datasets/imagenet', to: '/data', read_only: true },
    { label: 'http', begin_at: 8080, count: 2 },
  ]
  stays({ mounts: 'runs:/runs\ndatasets/imagenet:/data' }, { mounts: [{ from: 'runs', to: '/runs' }, mount] })
  stays({ ports: 'http, ssh' }, { ports: [port, { label: 'ssh' }] })
  stays({ ports: '' }, { ports: undefined })
  stays({ name: 'x' }, { name: 'x' })

  test('is counted among the settings that are hidden', () => {
    expect(read(file)).toMatchObject({ succeedAfter: 'never' })
    expect(professionalCount(read(file))).toBe(2)
  })

  test('goes when it is taken out', () => {
    expect(parse(changed(file, { mounts: '' }))).not.toHaveProperty('mounts')
  })
})

describe('a time limit', () => {
  const check = (text: string, hours: number | string) =>
    test(text, () => expect(read(`berth: 1\ntime_limit: ${text}\n`).limitHours).toBe(hours))
  check('1h30m', 1.5)
  check('2d', 48)
  check('90', 1.5)
  check('1d12h', 36)
})

test('several roles have a form each', () => {
  const file = 'berth: 1\nroles:\n- name: ps\n  image: a\n- name: worker\n  image: b\n  tasks: 2\n'
  expect(roleNames(file)).toEqual(['ps', 'worker'])
  const worker = readJob(file, 1)
  expect(worker).toMatchObject({ image: 'b', tasks: 2 })
  const after = worker ? writeJob(file, worker, { ...worker, tasks: 3 }) : ''
  expect(parse(after)).toEqual(parse(file.replace('tasks: 2', 'tasks: 3')))
})

test('YAML becomes JSON and back without a loss', () => {
  const json = written(FILE, 'json') ?? ''
  expect(JSON.parse(json)).toEqual(parse(FILE))
  expect(parse(written(json, 'yaml') ?? '')).toEqual(parse(FILE))
  expect(JSON.parse(changed(json, { gpus: 1 }))).toMatchObject({ gpus: 1, name: 'finetune' })
})

test('what is not Berth’s own has no form', () => {
  expect(readJob('{"jobName": "x", "taskRoles": []}')).toBeNull()
  expect(readJob('berth: 1\nname: [')).toBeNull()
  expect(written('name=x', 'json')).toBeNull()
})

test('a new job only waits to be worked in; a clone has another name', () => {
  const file = startingFile('python:3.12')
  expect(read(file)).toMatchObject({ command: 'sleep infinity', image: 'python:3.12', name: '' })
  expect(read(renamed(file, 'copy')).name).toBe('copy')
})

describe('roles', () => {
  const one = startingFile('base:1')

  test('are a list from the second on, and what stood at the top is the first', () => {
    const two = withRole(one)
    expect(roleNames(two)).toEqual(['main', 'worker'])
    expect(readJob(two, 0)).toMatchObject({ image: 'base:1', command: 'sleep infinity', cpus: 1 })
    expect(readJob(two, 1)).toMatchObject({ roleName: 'worker', image: 'base:1' })
    expect(roleNames(withRole(two))).toEqual(['main', 'worker', 'worker2'])
    expect(roleNames(withoutRole(two, 0))).toEqual(['worker'])
  })

  test('are named in the form, also the only one', () => {
    const named = changed(one, { roleName: 'trainer', failAfter: 2 })
    expect(parse(named)).toMatchObject({ roles: [{ name: 'trainer', image: 'base:1', fail_after: 2 }] })
  })
})

test('a clone that asks for less does so in every role that asks for more', () => {
  const two = withRole(changed(startingFile('base:1'), { gpus: 8 }))
  expect(parse(withGpus(two, 2))).toMatchObject({ roles: [{ name: 'main', gpus: 2 }, { name: 'worker' }] })
  expect(withGpus(two, undefined)).toBe(two)
})

describe('a mistake at a place of the file', () => {
  const check = (pointer: string, role: number, field: string | null) =>
    test(`${pointer} while role ${role} is shown`, () => expect(fieldAt(pointer, role)).toBe(field))
  check('/name', 0, 'name')
  check('/memory', 0, 'memoryGib')
  check('/roles/1/name', 1, 'roleName')
  check('/roles/1/ports/0/label', 1, 'ports')
  check('/roles/1/image', 0, null)
  check('/env/SEED', 0, null)
})
