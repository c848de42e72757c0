// The language of whoever is signed in: kept with the account, so that what is said outside the console, over SSH and at
// the addresses of apps, is in it too.

import { type QueryClient, useQueryClient } from '@tanstack/react-query'

import { meQuery, setLanguage } from '../api/session'
import { changeLanguage, currentLanguage, type Language, rememberedLanguage } from '../i18n/language'

/** What is to be done about the language once it is known who is signed in. */
export type Step = { speak: Language } | { tell: Language } | null

/** What was chosen in this browser stays; a browser that knows of no choice speaks the account's language. */
export function stepFor(
  account: Language | null | undefined,
  chosenHere: Language | null,
  spoken: Language,
): Step {
  if (chosenHere !== null) return account ? null : { tell: chosenHere }
  return account && account !== spoken ? { speak: account } : null
}

export async function settleLanguage(cache: QueryClient): Promise<void> {
  const me = cache.getQueryData(meQuery.queryKey)
  const step = me ? stepFor(me.language, rememberedLanguage(), currentLanguage()) : null
  if (step === null) return
  if ('speak' in step) await changeLanguage(step.speak, false)
  else void tell(cache, step.tell)
}

/** Speaks a language from now on: here, and to whoever is signed in everywhere else too. */
export function useChooseLanguage(): (language: Language) => Promise<void> {
  const cache = useQueryClient()
  return async (language) => {
    await changeLanguage(language)
    await tell(cache, language)
  }
}

async function tell(cache: QueryClient, language: Language) {
  const me = cache.getQueryData(meQuery.queryKey)
  // With a password that somebody else has seen nothing but changing it works.
  if (!me || me.must_change_password || me.language === language) return
  try {
    await setLanguage(language)
    cache.setQueryData(meQuery.queryKey, (now) => now && { ...now, language })
  } catch {
    // This page speaks it all the same, and the account learns it with the next choice.
  }
}
