import type { HttpRequest } from "@holdfast/https/request-handler.ts";
import { hasBody } from "./body.ts";

/** How long a client may take for its body. */
export const usualBodyMs = 30_000;

/** Ends a request whose body does not arrive in time, such as a byte a second, answered or not. */
export function limitBodyTime(request: HttpRequest, bodyMs: number): void {
  if (!hasBody(request)) return;
  // Over h2 the reader of a request may destroy it, and leave its stream to a client that does not end it.
  const source = "stream" in request ? request.stream : request;
  const timer = setTimeout(() => source.destroy(new Error("the body took too long")), bodyMs);
  const over = () => clearTimeout(timer);
  source.once("end", over);
  source.once("close", over);
}
