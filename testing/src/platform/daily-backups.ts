const minuteMs = 60_000;

/**
 * Settings by which the next daily backup begins as soon as one can: in the first full minute after the newest
 * automated one began.
 */
export function dueSoonAfter({ created_at: newest }: { readonly created_at: string }): {
  hour: number;
  minute: number;
} {
  const at = new Date((Math.floor(Date.parse(newest) / minuteMs) + 1) * minuteMs);
  return { hour: at.getUTCHours(), minute: at.getUTCMinutes() };
}
