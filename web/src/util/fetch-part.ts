/** How long to wait before each further try: a network that changes is quiet again within seconds. */
const PAUSES_MS = [50, 500, 2_000]

/** Fetches a part. A network that changes drops what is on its way, so it is asked for again before anybody is told. */
export async function fetchPart<T>(
  load: () => Promise<T>,
  pauses: readonly number[] = PAUSES_MS,
): Promise<T> {
  for (const pause of pauses) {
    try {
      return await load()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }
  return load()
}
