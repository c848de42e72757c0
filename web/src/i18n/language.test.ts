import { describe, expect, test } from 'vitest'

import type { ProblemCode } from '../api/types'
import { resources as english } from './en'
import { preferredLanguage } from './language'
import { resources as chinese } from './zh-CN'

/** Plural forms differ by language: `cpus_one` and `cpus_other` are one text. */
const PLURAL = /_(zero|one|two|few|many|other)$/

function texts(node: object, path = ''): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const [key, value] of Object.entries(node)) {
    const here = `${path}${path && '.'}${key}`.replace(PLURAL, '')
    if (typeof value === 'string') {
      const placeholders = found.get(here) ?? new Set()
      for (const [, name] of value.matchAll(/\{\{\s*([^},\s]+)/g)) placeholders.add(name ?? '')
      found.set(here, placeholders)
    } else {
      for (const [inner, placeholders] of texts(value, here)) found.set(inner, placeholders)
    }
  }
  return found
}

describe('English and Chinese', () => {
  const en = texts(english)
  const zh = texts(chinese)

  test('have the same keys', () => {
    expect([...zh.keys()].toSorted()).toEqual([...en.keys()].toSorted())
  })

  test('have the same placeholders', () => {
    for (const [key, placeholders] of en) expect.soft(zh.get(key), key).toEqual(placeholders)
  })

  test('have no empty text', () => {
    const empty = [...JSON.stringify([english, chinese]).matchAll(/"[^"]+":""/g)].map(String)
    expect(empty).toEqual([])
  })
})

test('every error code of the API has a translation', () => {
  // `satisfies` makes the compiler ask for a code that the API has and this list has not.
  const codes = {
    unauthenticated: true,
    bad_credentials: true,
    too_many_attempts: true,
    too_many_open: true,
    password_change_required: true,
    forbidden: true,
    not_found: true,
    bad_name: true,
    name_taken: true,
    already_exists: true,
    user_removed: true,
    last_admin: true,
    in_use: true,
    bad_image: true,
    image_not_found: true,
    registry_denied: true,
    registry_unreachable: true,
    registry_not_allowed: true,
    bad_value: true,
    too_large: true,
    bad_job_file: true,
    needs_more_machines: true,
    over_quota: true,
    not_here: true,
    pool_takes_others: true,
    priority_too_high: true,
    weak_password: true,
    wrong_state: true,
    bad_body: true,
    unknown_field: true,
    body_too_large: true,
    cross_site: true,
    cluster_unreachable: true,
    engine_unreachable: true,
    agent_unreachable: true,
    apps_unavailable: true,
    disk_full: true,
    no_registry: true,
    being_saved: true,
    cannot_save: true,
    image_quota: true,
    internal: true,
    // Never sent by a gateway: what an older client makes of a code it does not know.
    unknown: false,
  } satisfies Record<ProblemCode, boolean>
  const wanted = Object.entries(codes).flatMap(([code, sent]) => (sent ? [code] : []))
  expect(Object.keys(english.errors.code)).toEqual(expect.arrayContaining(wanted))
})

describe('the first language', () => {
  const check = (browser: string[], expected: string) =>
    test(browser.join(', ') || 'none', () => expect(preferredLanguage(browser)).toBe(expected))
  check(['zh-TW', 'en'], 'zh-CN')
  check(['zh'], 'zh-CN')
  check(['en-GB', 'zh-CN'], 'en')
  check(['fr', 'zh-CN'], 'zh-CN')
  check(['fr'], 'en')
  check([], 'en')
})
