// Waiting times between attempts: doubling from half a second to fifteen, each shortened at random so that many
// browsers do not come back at once.

const FIRST_MS = 500
const LONGEST_MS = 15_000

export class Backoff {
  private wait = FIRST_MS

  next(): number {
    const now = this.wait
    this.wait = Math.min(this.wait * 2, LONGEST_MS)
    return now * (0.5 + Math.random() / 2)
  }

  reset() {
    this.wait = FIRST_MS
  }
}
