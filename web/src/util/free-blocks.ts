// What is free of the machines, as those see it who are about to ask for a part.

import type { ClusterNode } from '../api/types'

export interface ModelSum {
  model: string
  all: number
  free: number
  /** The most that are free on one node. */
  block: number
}

export interface Block {
  cpus: number
  memoryBytes: number
  gpus: number
}

const isFree = (card: ClusterNode['cards'][number]) => card.healthy && !card.holder

const isReady = (node: ClusterNode) => node.state.state === 'ready'

/**
 * Each of the three is the most on one node, not necessarily the same one. Where processors are given out more than once,
 * one task still gets no more than a machine has: `most`.
 */
export function largestFree(nodes: readonly ClusterNode[], most = Infinity): Block {
  const largest = (of: (node: ClusterNode) => number) =>
    Math.max(0, ...nodes.filter(isReady).map((node) => of(node)))
  return {
    cpus: Math.min(
      most,
      largest((node) => node.cpus - node.cpus_held),
    ),
    memoryBytes: largest((node) => node.memory_bytes - node.memory_held_bytes),
    gpus: largest((node) => node.cards.filter(isFree).length),
  }
}

/** What is given out, and what there is. */
export interface Share {
  held: number
  all: number
}

/** All machines together. One that is not well has what it has, and none of it is free. */
export function sumsOfNodes(nodes: readonly ClusterNode[]): Record<'cpus' | 'memory' | 'gpus', Share> {
  const sum = (held: (node: ClusterNode) => number, all: (node: ClusterNode) => number): Share => ({
    held: nodes.reduce((total, node) => total + (isReady(node) ? held(node) : all(node)), 0),
    all: nodes.reduce((total, node) => total + all(node), 0),
  })
  return {
    cpus: sum(
      (node) => node.cpus_held,
      (node) => node.cpus,
    ),
    memory: sum(
      (node) => node.memory_held_bytes,
      (node) => node.memory_bytes,
    ),
    gpus: sum(
      (node) => node.cards.filter((card) => !isFree(card)).length,
      (node) => node.cards.length,
    ),
  }
}

export function sumsByModel(nodes: readonly ClusterNode[]): ModelSum[] {
  const models = new Set(nodes.flatMap((node) => node.cards.map((card) => card.model)))
  return [...models].toSorted().map((model) => {
    const of = nodes.map((node) => node.cards.filter((card) => card.model === model))
    const free = nodes.map((node, at) => (isReady(node) ? (of[at] ?? []).filter(isFree).length : 0))
    return {
      model,
      all: of.flat().length,
      free: free.reduce((sum, one) => sum + one, 0),
      block: Math.max(0, ...free),
    }
  })
}
