// The console's own address for programs: few of them know that a name below `localhost` is this very machine, as
// browsers do.

export function hostForPrograms(hostname: string): string {
  return hostname.endsWith('.localhost') ? 'localhost' : hostname
}

export function originForPrograms({ origin, hostname }: { origin: string; hostname: string }): string {
  return origin.replace(hostname, hostForPrograms(hostname))
}
