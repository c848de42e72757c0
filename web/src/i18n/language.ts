// Which language the console speaks, and how it is remembered.
//
// Two bundles per language, loaded on demand: the words of the first page, and those of the parts that are fetched later.
// The other language costs nothing until it is chosen.

import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'

import { fetchPart } from '../util/fetch-part'
import type { resources as english } from './en'

/** Each language is named in itself: someone who cannot read this page must still find the way out. */
export const LANGUAGES = [
  { code: 'zh-CN', short: '中', name: '简体中文' },
  { code: 'en', short: 'EN', name: 'English' },
] as const

export type Language = (typeof LANGUAGES)[number]['code']

const STORAGE_KEY = 'berth.language'

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'common'
    resources: typeof english
  }
}

export function isLanguage(text: string | null): text is Language {
  return LANGUAGES.some((language) => language.code === text)
}

/** What was chosen in this browser. */
export function rememberedLanguage(): Language | null {
  try {
    const stored = localStorage.getItem(STORAGE_KEY)
    return isLanguage(stored) ? stored : null
  } catch {
    return null
  }
}

/** The stored choice, else the first of the browser's languages that we speak. */
export function preferredLanguage(browserLanguages: readonly string[]): Language {
  for (const language of browserLanguages) {
    if (language.toLowerCase().startsWith('zh')) return 'zh-CN'
    if (language.toLowerCase().startsWith('en')) return 'en'
  }
  return 'en'
}

function add(language: Language, texts: Record<string, object>) {
  for (const [namespace, words] of Object.entries(texts))
    i18next.addResourceBundle(language, namespace, words)
}

async function loadFirst(language: Language) {
  if (i18next.hasResourceBundle(language, 'common')) return
  const { first } = await fetchPart(() =>
    language === 'zh-CN' ? import('./zh-CN/first') : import('./en/first'),
  )
  add(language, first)
}

async function loadRest(language: Language) {
  if (i18next.hasResourceBundle(language, 'admin')) return
  const { rest } = await fetchPart(() =>
    language === 'zh-CN' ? import('./zh-CN/rest') : import('./en/rest'),
  )
  add(language, rest)
}

/** Whether anything is on the screen that was fetched later. */
let beyondFirst = false

/** The words of whatever is fetched after the first page. */
export async function loadWords(): Promise<void> {
  beyondFirst = true
  if (i18next.isInitialized) await loadRest(currentLanguage())
}

async function load(language: Language) {
  await Promise.all([loadFirst(language), ...(beyondFirst ? [loadRest(language)] : [])])
}

export async function startLanguage(): Promise<void> {
  const language = rememberedLanguage() ?? preferredLanguage(navigator.languages)
  await i18next.use(initReactI18next).init({
    lng: language,
    fallbackLng: false,
    defaultNS: 'common',
    resources: {},
    interpolation: { escapeValue: false },
    returnNull: false,
  })
  await load(language)
  document.documentElement.lang = language
  // Bundles that arrive after `init` do not redraw anything; changing to the same language does.
  await i18next.changeLanguage(language)
}

/** Speaks a language; `remember` keeps it for this browser. */
export async function changeLanguage(language: Language, remember = true): Promise<void> {
  await load(language)
  await i18next.changeLanguage(language)
  document.documentElement.lang = language
  if (!remember) return
  try {
    localStorage.setItem(STORAGE_KEY, language)
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

export function currentLanguage(): Language {
  return isLanguage(i18next.language) ? i18next.language : 'en'
}
