import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'

import { signOut } from '../api/session'
import { paths } from '../util/path-builder'
import { useLive } from './live-context'
import { showTrouble } from './trouble'

/** Signs out, and forgets what was only for whoever was signed in. */
export function useSignOut(): () => void {
  const cache = useQueryClient()
  const navigate = useNavigate()
  const live = useLive()
  const leave = useMutation({
    mutationFn: () => {
      live.pause()
      return signOut()
    },
    onSuccess: async () => {
      await navigate({ href: paths.signIn() })
      cache.clear()
    },
    onError: (error) => {
      live.reconnect()
      showTrouble(error)
    },
  })
  return () => leave.mutate()
}
