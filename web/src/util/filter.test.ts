import { expect, test } from 'vitest'

import { filtered, filterOf, type FilterSearch, readFilter } from './filter'

interface Row {
  name: string
  state: string
  user: string
}

const ROWS: Row[] = [
  { name: 'Train', state: 'running', user: 'Alice' },
  { name: 'eval', state: 'failed', user: 'bob' },
  { name: 'train-2', state: 'waiting', user: 'bob' },
]

const check = (search: FilterSearch, expected: string[]) =>
  test(JSON.stringify(search), () =>
    expect(
      filtered(ROWS, filterOf(search), {
        text: ({ name, user }) => `${name} ${user}`,
        state: ({ state }) => state,
        user: ({ user }) => user,
      }).map(({ name }) => name),
    ).toEqual(expected),
  )

check({}, ['Train', 'eval', 'train-2'])
check({ find: ' TRAIN ' }, ['Train', 'train-2'])
check({ find: 'alice' }, ['Train'])
check({ state: 'failed,waiting' }, ['eval', 'train-2'])
check({ user: 'bob', state: 'failed' }, ['eval'])
check({ user: 'nobody' }, [])

test('an address is read as it was written', () => {
  expect(readFilter({ find: 7, state: 'failed', user: '', sort: 'name' })).toEqual({
    find: '7',
    state: 'failed',
  })
})
