import i18next from 'i18next'
import { beforeAll, describe, expect, test } from 'vitest'

import { resources as en } from '../i18n/en'
import { GIB } from '../util/format'
import { createErrors, requestFrom, startingValues } from './create-instance'
import { instanceAs, notesAt, readInstance, writeInstance } from './instance-file'

const begin = startingValues({ cpus: 8, memoryBytes: 32 * GIB, gpus: 2 }, 'base')

beforeAll(() => i18next.init({ lng: 'en', resources: { en }, interpolation: { escapeValue: false } }))

const read = (file: string) => readInstance(file, begin, i18next.getFixedT('en', 'create'))

const FULL = `name: train # the big one
image: lab:1
cpus: 4
memory: 8G
shm: 512M
gpus: 1
gpu_model: "3090"
cluster: annex
pool: night
env:
  SEED: "007"
command: [python, train.py, a b]
auto_start: true
secrets:
  - name: HF_TOKEN
`

describe('a file of an instance', () => {
  test('says all that the form says', () => {
    const { values, notes } = read(FULL)
    expect(notes).toEqual([])
    expect(values && requestFrom(values)).toEqual({
      name: 'train',
      image: 'lab:1',
      cpus: 4,
      memory_bytes: 8 * GIB,
      shm_bytes: GIB / 2,
      gpus: 1,
      gpu_model: '3090',
      cluster: 'annex',
      pool: 'night',
      env: { SEED: '007' },
      command: ['python', 'train.py', 'a b'],
      auto_start: true,
      secrets: [{ name: 'HF_TOKEN' }],
    })
  })

  test('is what it was when nothing was changed, and keeps its comments when something was', () => {
    const { values } = read(FULL)
    if (!values) throw new Error('it has mistakes')
    expect(writeInstance(requestFrom(values), FULL)).toBe(
      FULL.replace('[python, train.py, a b]', '[ python, train.py, a b ]'),
    )
    const after = writeInstance(requestFrom({ ...values, cpus: 2, env: [] }), FULL)
    expect(after).toContain('# the big one')
    expect(after).toContain('cpus: 2')
    expect(after).not.toContain('env')
  })

  test('comes back from JSON, with sizes as the API has them', () => {
    const json = instanceAs(FULL, 'json') ?? ''
    expect(JSON.parse(json).memory).toBe('8G')
    const { values } = read('{"name": "x", "cpus": 1, "memory_bytes": 2147483648, "gpus": 0}')
    expect(values?.memoryGib).toBe(2)
    expect(values?.image).toBe('base')
  })

  test.each([
    ['name: [x]', 1],
    ['name: x\ncpus: many', 2],
    ['name: x\nmemory: lots', 2],
    ['name: x\ncolour: red', 2],
    ['name: x\nenv: [a]', 2],
    ['name: x\nsecrets: [{}]', 2],
    ['name: x\nauto_start: maybe', 2],
    ['name: "x', 1],
    ['just words', 1],
    ['', 1],
  ])('%j has a mistake in line %i', (file, line) => {
    const { values, notes } = read(file)
    expect(values).toBeNull()
    expect(notes[0]?.line).toBe(line)
  })

  test('shows what the form finds wrong at its line', () => {
    const file = 'name: x\nimage: a b\nenv:\n  GOOD: 1\n  bad-name: 2\n'
    const { values } = read(file)
    const errors = values ? createErrors(values, null, i18next.getFixedT('en', 'create')) : {}
    expect(notesAt(errors, file).map(({ line }) => line)).toEqual([2, 5])
  })
})
