// Parts of the console that are fetched when they are first needed.

import { lazy } from 'react'

import { loadWords } from '../i18n/language'
import { fetchPart } from './fetch-part'

/** A component that is fetched by itself, and whose words are those of the first page. */
export const firstPart: typeof lazy = (load) => lazy(() => fetchPart(load))

/** A component that comes with the first visit to it, and its words with it. */
export const later: typeof lazy = (load) =>
  lazy(async () => {
    const [part] = await Promise.all([fetchPart(load), loadWords()])
    return part
  })
