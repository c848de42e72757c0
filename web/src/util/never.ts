/** Makes the compiler say which case of a union was forgotten. */
export function never(value: never): never {
  throw new Error(`unforeseen value ${JSON.stringify(value)}`)
}
