import { expect, test, vi } from 'vitest'

import { fetchPart } from './fetch-part'

const DROPPED = new TypeError('Failed to fetch dynamically imported module')

test('a part that was dropped on its way is asked for again', async () => {
  const load = vi.fn<() => Promise<string>>().mockRejectedValueOnce(DROPPED).mockResolvedValue('part')
  await expect(fetchPart(load, [0, 0])).resolves.toBe('part')
})

test('a part that never arrives is told of', async () => {
  const load = vi.fn<() => Promise<string>>().mockRejectedValue(DROPPED)
  await expect(fetchPart(load, [0, 0])).rejects.toBe(DROPPED)
  expect(load).toHaveBeenCalledTimes(3)
})
