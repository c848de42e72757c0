import { Button, FileButton } from '@mantine/core'
import { useRef } from 'react'

import { ApiError } from '../api/client'
import { IconUpload } from '../ui/icons'
import { formatBytes, MIB } from '../util/format'
import { showTrouble } from './trouble'

/** What the gateway takes of a file; what is larger is not even read. */
const LARGEST = MIB

interface Props {
  label: string
  small?: boolean
  onText: (text: string) => void
}

/** Reads a file of the reader's own machine as text. */
export function TextFileButton({ label, small, onText }: Props) {
  const forget = useRef<() => void>(null)
  const read = async (chosen: File | null) => {
    // The same file may be chosen again: it may have been changed meanwhile.
    forget.current?.()
    if (!chosen) return
    if (chosen.size > LARGEST) return showTrouble(tooLarge(chosen.name))
    onText(await chosen.text())
  }
  return (
    <FileButton resetRef={forget} onChange={(chosen) => void read(chosen)}>
      {(props) => (
        <Button
          {...props}
          w="fit-content"
          variant="default"
          size={small ? 'xs' : undefined}
          leftSection={<IconUpload size={small ? 16 : 18} />}
        >
          {label}
        </Button>
      )}
    </FileButton>
  )
}

function tooLarge(name: string): ApiError {
  const params = { name, limit: formatBytes(LARGEST) }
  return new ApiError(0, { code: 'file_too_large', message: name, params })
}
