import type { connectValkey } from "@holdfast/testing/api/clients.ts";
import type { WriteSession } from "./short-timeout-writer.ts";

/** Rows as the members of a sorted set. */
export function openMembers(client: Awaited<ReturnType<typeof connectValkey>>): WriteSession {
  return {
    close: () => client.disconnect(),
    write: (number) => client.zadd("written", number, String(number)),
    countBelow: (number) => client.zcount("written", "-inf", `(${number}`),
  };
}
