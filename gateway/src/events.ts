import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { Call, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Exchange, headerOf } from "./exchange.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { HttpResponse } from "@holdfast/https/request-handler.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import type { Encode } from "./json/encode.ts";
import type { ApiMethod } from "./method.ts";
import type { Places } from "./places.ts";
import { pause } from "./pause.ts";
import { problemOf } from "./problem.ts";

/** Answers a request that follows a list: server-sent events until the client leaves or may read no more. */
export type SendEvents = (exchange: Exchange, input: Message, call: FollowingCall, judge: Judge) => Promise<void>;

/** A call whose caller is looked at again while it lasts. */
type FollowingCall = Call & { principal: Principal | undefined };

/** The caller as of now; throws when its right to read has ended. */
type Judge = () => Promise<Principal | undefined>;

type Page = Readonly<Record<string, unknown>>;

/** Time without an event after which a comment shows that the stream lives. */
const keepAliveMs = 15_000;
/** Pause after a page that was the last. */
const pollMs = 500;

/**
 * Follows a list method by its cursor: each entry is one event, the last of a page carries the cursor as its id, so
 * that Last-Event-ID resumes without a gap. The next page is read only when the client has taken the page before. The
 * caller is authorized anew before each page is read and again before it is sent, so that a revoked right ends the
 * stream.
 */
export function compileEvents(
  method: ApiMethod,
  encoders: (message: DescMessage) => Encode,
  deps: GatewayDeps,
  places: Places,
): SendEvents {
  const { output } = method.description;
  const list = output.fields.find((field) => field.fieldKind === "list" && field.message !== undefined);
  if (list?.message === undefined || output.field.nextCursor === undefined || output.field.hasMore === undefined) {
    throw new Error(`${method.name} cannot be followed: its answer needs a list, next_cursor and has_more`);
  }
  const entries: DescField = list;
  const encode = encoders(list.message);

  return async (exchange, input, call, judge) => {
    const leave = places.take(call.principal);
    try {
      await follow(exchange, input, call, judge);
    } finally {
      leave();
    }
  };

  async function follow(exchange: Exchange, input: Message, call: FollowingCall, judge: Judge): Promise<void> {
    const { response } = exchange;
    const request = input as Message & { cursor?: string };
    const lastEventId = headerOf(exchange.request, "last-event-id");
    if (lastEventId !== undefined && lastEventId !== "") request.cursor = lastEventId;
    // The first page is read before the answer begins, so its errors are answers of their own.
    let page = (await method.handle(request, call)) as Page;
    (response as ServerResponse).writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "request-id": exchange.requestId,
      "x-content-type-options": "nosniff",
    });
    await write(response, ": following\n\n", call.signal);
    let quietSince = deps.clock.monotonicMs();
    try {
      while (!call.signal.aborted) {
        call.principal = await judge();
        const text = eventsOf(page, entries, encode);
        const now = deps.clock.monotonicMs();
        const due = now - quietSince >= keepAliveMs;
        if (text !== "" || due) {
          await write(response, text === "" ? ": still here\n\n" : text, call.signal);
          quietSince = now;
        }
        if (page.hasMore !== true) await pause(pollMs, call.signal);
        if (call.signal.aborted) break;
        request.cursor = String(page.nextCursor);
        call.principal = await judge();
        page = (await method.handle(request, call)) as Page;
      }
    } catch (error) {
      if (call.signal.aborted) return;
      const known = HoldfastError.from(error);
      if (known.key === "INTERNAL")
        deps.log.error("following failed", { method: method.name, requestId: exchange.requestId, error });
      response.end(`event: error\ndata: ${JSON.stringify(problemOf(known, exchange.requestId, deps.baseUrl))}\n\n`);
    }
  }
}

function eventsOf(page: Page, entries: DescField, encode: Encode): string {
  const list = (lookUp(page, entries.localName) ?? []) as readonly object[];
  return list
    .map((entry, index) => `${index === list.length - 1 ? `id: ${page.nextCursor}\n` : ""}data: ${encode(entry)}\n\n`)
    .join("");
}

async function write(response: HttpResponse, text: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted || (response as NodeJS.WritableStream).write(text)) return;
  await once(response, "drain", { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
