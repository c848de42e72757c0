// The package types only its index; its single files have the same shape.
declare module '@tabler/icons-react/dist/esm/icons/*.mjs' {
  import type { Icon } from '@tabler/icons-react'
  const icon: Icon
  export { icon as default }
}
