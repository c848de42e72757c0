import i18next from 'i18next'
import { beforeAll, describe, expect, test } from 'vitest'

import type { Instance } from '../api/types'
import { resources as en } from '../i18n/en'
import { GIB } from '../util/format'
import {
  cloneName,
  freshName,
  createErrors,
  type CreateValues,
  requestFrom,
  slugOf,
  specOf,
  startingValues,
  valuesLike,
} from './create-instance'

const largest = { cpus: 8, memoryBytes: 32 * GIB, gpus: 2 }
const good: CreateValues = { ...startingValues(largest, 'base'), name: 'train_1' }

beforeAll(() => i18next.init({ lng: 'en', resources: { en }, interpolation: { escapeValue: false } }))

function wrong(change: Partial<CreateValues>): string[] {
  return Object.keys(createErrors({ ...good, ...change }, largest, i18next.getFixedT('en', 'create')))
}

describe('what is wrong', () => {
  const check = (change: Partial<CreateValues>, expected: string[]) =>
    test(JSON.stringify(change), () => expect(wrong(change)).toEqual(expected))
  check({}, [])
  check({ name: '' }, ['name'])
  check({ name: 'a-b' }, ['name'])
  check({ name: 'a'.repeat(27) }, [])
  check({ name: 'a'.repeat(28) }, ['name'])
  check({ name: '训练' }, ['name'])
  check({ cpus: 9 }, ['cpus'])
  check({ cpus: '' }, ['cpus'])
  check({ memoryGib: 33 }, ['memoryGib'])
  check({ shmGib: 5 }, ['shmGib'])
  check({ gpus: 3 }, ['gpus'])
  check({ image: 'two words' }, ['image'])
  check({ command: 'echo "open' }, ['command'])
  check({ env: [{ id: 1, key: '1A', value: '' }] }, ['env.0.key'])
  check(
    {
      env: [
        { id: 1, key: 'A', value: '' },
        { id: 2, key: 'A', value: '' },
      ],
    },
    ['env.1.key'],
  )
})

test('a site of unknown size bounds nothing', () => {
  const t = i18next.getFixedT('en', 'create')
  expect(createErrors({ ...good, cpus: 999, gpus: 99 }, null, t)).toEqual({})
})

test('the request holds what was filled in, and nothing else', () => {
  expect(requestFrom({ ...good, image: ' ', shmGib: 0 })).toEqual({
    name: 'train_1',
    cpus: 2,
    memory_bytes: 4 * GIB,
    gpus: 0,
  })
  expect(
    requestFrom({ ...good, command: `sh -c 'a b'`, env: [{ id: 1, key: 'K', value: 'v' }] }),
  ).toMatchObject({
    image: 'base',
    shm_bytes: GIB,
    command: ['sh', '-c', 'a b'],
    env: { K: 'v' },
  })
})

test('a clone is as its source was, but for the name', () => {
  const source: Instance = {
    id: 'ins_1',
    name: 'train',
    slug: 'train',
    user: 'alice',
    image: 'base',
    cpus: 2,
    gpus: 2,
    gpu_model: 'RTX 3090',
    memory_bytes: GIB,
    shm_bytes: GIB,
    env: { A: '1' },
    command: ['sh', '-c', 'a b'],
    auto_start: true,
    secrets: [{ name: 'HF_TOKEN', env: 'HF_TOKEN' }],
    goal: 'running',
    status: { state: 'starting' },
    actions: [],
    created_at: '2026-01-01',
  }
  expect(requestFrom(valuesLike(source))).toEqual({ ...specOf(source), name: 'train_2' })
  expect(specOf(source)).toMatchObject({ gpu_model: 'RTX 3090', auto_start: true })
})

describe('slugOf', () => {
  const check = (name: string, expected: string) => test(name, () => expect(slugOf(name)).toBe(expected))
  check('Train_1', 'train-1')
  check('__a__b__', 'a-b')
  check('___', 'x')
})

test('a new instance has a name that is free', () => {
  expect(freshName([])).toBe('dev_1')
  expect(freshName(['dev_1', 'train'])).toBe('dev_2')
  expect(freshName(['dev_2'])).toBe('dev_1')
})

describe('cloneName', () => {
  const check = (name: string, expected: string) => test(name, () => expect(cloneName(name)).toBe(expected))
  check('train', 'train_2')
  check('train_2', 'train_3')
  check('a'.repeat(27), `${'a'.repeat(25)}_2`)
  check('_', '__2')
})
