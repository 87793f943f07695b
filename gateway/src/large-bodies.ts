import { HoldfastError } from "@holdfast/common/errors.ts";

/** Requests with large bodies that are held at a time: each costs memory and the event loop. */
const atOnce = 8;

/** The places of large bodies, shared by all requests of a gateway. */
export interface LargeBodies {
  /** For one request. */
  place(): { take(): void; free(): void };
}

/** `take` throws RATE_LIMITED while all places are taken; `free` returns a place. */
export function createLargeBodies(): LargeBodies {
  let taken = 0;
  return {
    place() {
      let mine = 0;
      return {
        take() {
          if (taken >= atOnce)
            throw new HoldfastError("RATE_LIMITED", `${atOnce} requests with large bodies are at work.`, {
              retryAfterS: 1,
            });
          taken += 1;
          mine += 1;
        },
        free() {
          taken -= mine;
          mine = 0;
        },
      };
    },
  };
}
