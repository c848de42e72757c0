import { createContext, useContext } from 'react'

/** Why nothing can be asked of the gateway now; nothing while it answers. The shell says it, the buttons repeat it. */
export const OfflineContext = createContext<string | undefined>(undefined)

export function useOffline(): string | undefined {
  return useContext(OfflineContext)
}
