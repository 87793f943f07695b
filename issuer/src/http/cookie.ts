/** For this host only, not for scripts, and not for what other sites send. `maxAgeS` 0 removes it. */
export function setCookie(name: string, value: string, maxAgeS: number): string {
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${maxAgeS}`;
}
