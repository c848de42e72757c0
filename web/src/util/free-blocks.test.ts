import { expect, test } from 'vitest'

import type { ClusterCard, ClusterNode } from '../api/types'
import { largestFree, sumsByModel, sumsOfNodes } from './free-blocks'

const card = (model: string, held = false, healthy = true): ClusterCard => ({
  id: `${model}-${held}-${healthy}`,
  model,
  healthy,
  ...(held && { holder: { since: '2026-01-01T00:00:00Z' } }),
})

const node = (name: string, cards: ClusterCard[], more: Partial<ClusterNode> = {}): ClusterNode => ({
  name,
  state: { state: 'ready' },
  cpus: 8,
  cpus_held: 2,
  memory_bytes: 100,
  memory_held_bytes: 60,
  cards,
  ...more,
})

test('a block is what is free on one node', () => {
  const nodes = [
    node('a', [card('3090'), card('3090', true), card('3090', false, false)]),
    node('b', [card('3090'), card('3090'), card('A100')]),
    node('c', [card('A100'), card('A100')], { state: { state: 'unwell', message: '' }, cpus: 64 }),
  ]
  expect(largestFree(nodes)).toEqual({ cpus: 6, memoryBytes: 40, gpus: 3 })
  expect(largestFree(nodes, 4).cpus).toBe(4)
  expect(sumsByModel(nodes)).toEqual([
    { model: '3090', all: 5, free: 3, block: 2 },
    { model: 'A100', all: 3, free: 1, block: 1 },
  ])
  // Nobody gets what the third has: it is not well.
  expect(sumsOfNodes(nodes)).toEqual({
    cpus: { held: 68, all: 80 },
    memory: { held: 220, all: 300 },
    gpus: { held: 4, all: 8 },
  })
})

test('no GPUs at all is an ordinary site', () => {
  expect(sumsByModel([node('a', [])])).toEqual([])
  expect(largestFree([])).toEqual({ cpus: 0, memoryBytes: 0, gpus: 0 })
})
