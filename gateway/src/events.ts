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
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import { pause } from "./pause.ts";
import { problemOf } from "./problem.ts";

/** Follows a list as server-sent events until the client disconnects or is not authorized any more. */
export type SendEvents = (
  exchange: Exchange,
  input: Message,
  call: FollowingCall,
  reauthorize: Reauthorize,
) => Promise<void>;

/** A call whose principal is updated by each authorization. */
type FollowingCall = Call & { principal: Principal | undefined };

/** Authorizes the caller again; throws if it may not read any more. */
type Reauthorize = () => Promise<Principal | undefined>;

type Page = Readonly<Record<string, unknown>>;

/** Time without an event after which a comment keeps the connection alive. */
const keepAliveMs = 15_000;
/** Interval of polls after the last page. */
const pollIntervalMs = 500;

/**
 * Follows a list method by its cursor. Each entry is one event; the last entry of a page has the cursor as its id, so
 * that Last-Event-ID resumes without a gap. A page is read after the client has read the previous one. The caller is
 * authorized before each page is read and again before it is sent, so that a revoked credential ends the stream.
 */
export function compileEvents(
  method: ApiMethod,
  encoders: (message: DescMessage) => Encode,
  deps: GatewayDeps,
  limit: ConcurrencyLimit,
): SendEvents {
  const { output } = method.description;
  const list = output.fields.find((field) => field.fieldKind === "list" && field.message !== undefined);
  if (list?.message === undefined || output.field.nextCursor === undefined || output.field.hasMore === undefined) {
    throw new Error(`${method.name} cannot be followed: its output needs a list, next_cursor and has_more`);
  }
  const entries: DescField = list;
  const encode = encoders(list.message);

  return async (exchange, input, call, reauthorize) => {
    const release = limit.take(call.principal);
    try {
      await follow(exchange, input, call, reauthorize);
    } finally {
      release();
    }
  };

  async function follow(
    exchange: Exchange,
    input: Message,
    call: FollowingCall,
    reauthorize: Reauthorize,
  ): Promise<void> {
    const { response } = exchange;
    const request = input as Message & { cursor?: string };
    const lastEventId = headerOf(exchange.request, "last-event-id");
    if (lastEventId !== undefined && lastEventId !== "") request.cursor = lastEventId;
    // The first page is read before the headers are sent, so that its errors are ordinary error responses.
    let page = (await method.handle(request, call)) as Page;
    (response as ServerResponse).writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "request-id": exchange.requestId,
      "x-content-type-options": "nosniff",
    });
    await write(response, ": following\n\n", call.signal);
    let lastWriteMs = deps.clock.monotonicMs();
    try {
      while (!call.signal.aborted) {
        call.principal = await reauthorize();
        const text = eventsOf(page, entries, encode);
        const now = deps.clock.monotonicMs();
        const due = now - lastWriteMs >= keepAliveMs;
        if (text !== "" || due) {
          await write(response, text === "" ? ": keep-alive\n\n" : text, call.signal);
          lastWriteMs = now;
        }
        if (page.hasMore !== true) await pause(pollIntervalMs, call.signal);
        if (call.signal.aborted) break;
        request.cursor = String(page.nextCursor);
        call.principal = await reauthorize();
        page = (await method.handle(request, call)) as Page;
      }
    } catch (error) {
      if (call.signal.aborted) return;
      const reported = HoldfastError.from(error);
      if (reported.key === "INTERNAL")
        deps.log.error("following a list failed", { method: method.name, requestId: exchange.requestId, error });
      response.end(`event: error\ndata: ${JSON.stringify(problemOf(reported, exchange.requestId, deps.baseUrl))}\n\n`);
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
