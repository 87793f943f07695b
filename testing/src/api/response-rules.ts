import { faultsOfResponse } from "./response-shape.ts";
import { findRestMethod } from "./api-methods.ts";
import type { RestResponse } from "./rest-response.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Throws when a response breaks a rule that all responses have. */
export function checkResponse(verb: string, path: string, response: RestResponse<unknown>): void {
  const faults = [
    ...faultsOfHeaders(response),
    ...(response.status >= 400 ? faultsOfProblem(response) : faultsOfSuccess(verb, path, response)),
  ];
  if (faults.length === 0) return;
  throw new Error(
    `the answer to ${verb} ${path} breaks the contract:\n  ${faults.join("\n  ")}\n${response.status} ${response.text}`,
  );
}

function faultsOfHeaders({ headers }: RestResponse<unknown>): string[] {
  const faults: string[] = [];
  if (!uuid.test(String(headers["request-id"]))) faults.push(`Request-Id is ${headers["request-id"]}`);
  if (headers["cache-control"] !== "no-store") faults.push(`Cache-Control is ${headers["cache-control"]}`);
  return faults;
}

function faultsOfProblem({ status, headers, json, text }: RestResponse<unknown>): string[] {
  // A response to HEAD has no body.
  if (text === "") return [];
  const faults: string[] = [];
  const problem = json as Record<string, unknown>;
  if (headers["content-type"] !== "application/problem+json") faults.push(`Content-Type is ${headers["content-type"]}`);
  for (const member of ["type", "title", "detail", "instance", "code"]) {
    if (typeof problem[member] !== "string" || problem[member] === "") faults.push(`${member} is ${problem[member]}`);
  }
  if (!/^[a-z][a-z0-9_]*$/.test(String(problem["code"]))) faults.push(`code is ${problem["code"]}`);
  if (!String(problem["type"]).endsWith(`/docs/errors/${problem["code"]}`)) faults.push(`type is ${problem["type"]}`);
  if (problem["status"] !== status) faults.push(`status is ${problem["status"]}`);
  // A stored response is sent unchanged, so it names the request that it was created for.
  const isOfRequest = problem["instance"] === `urn:uuid:${headers["request-id"]}`;
  if (!isOfRequest && headers["idempotency-replayed"] !== "true") faults.push(`instance is ${problem["instance"]}`);
  faults.push(...faultsOfErrors(problem["errors"], problem["code"]));
  const challenges = String(headers["www-authenticate"] ?? "");
  // Scripts of pages get only the second challenge.
  if (status === 401 && !/^(Basic .*, )?Bearer /.test(challenges)) faults.push(`WWW-Authenticate is ${challenges}`);
  if ((status === 503 || status === 429) && !/^\d+$/.test(headers["retry-after"] ?? "")) faults.push("no Retry-After");
  if (status === 405 && !headers.allow) faults.push("no Allow");
  return faults;
}

function faultsOfErrors(errors: unknown, code: unknown): string[] {
  if (!Array.isArray(errors)) return ["errors is no array"];
  if (code === "invalid_request" && errors.length === 0) return ["errors is empty"];
  return errors.flatMap(({ field, pointer, code: kind, detail }, index) => {
    const isComplete =
      typeof field === "string" && typeof kind === "string" && typeof detail === "string" && detail !== "";
    const pointsRight = pointer === null || (typeof pointer === "string" && /^(\/.*)?$/.test(pointer));
    return isComplete && pointsRight ? [] : [`errors[${index}] is not {field, pointer, code, detail}`];
  });
}

function faultsOfSuccess(verb: string, path: string, { status, headers, json, text }: RestResponse<unknown>): string[] {
  const found = findRestMethod(verb, path);
  if (verb === "HEAD") return text === "" ? [] : ["the answer to HEAD has a body"];
  if (found === undefined || headers["content-type"]?.startsWith("text/event-stream")) return [];
  const statuses = [found.rules.success || 200, ...found.rules.otherStatuses.map(({ http }) => http)];
  const faults = statuses.includes(status) ? [] : [`the status is ${status}, not ${statuses.join(" or ")}`];
  if (status === 204) return text === "" ? faults : [...faults, "204 has a body"];
  if (found.rules.text !== "")
    return headers["content-type"] === found.rules.text ? faults : [...faults, `it is ${headers["content-type"]}`];
  if (headers["content-type"] !== "application/json") faults.push(`Content-Type is ${headers["content-type"]}`);
  // A change that is complete with its response has no location.
  const hasLocation = found.rules.location !== "" && status !== 200;
  if (hasLocation && !headers.location?.startsWith("/")) faults.push(`Location is ${headers.location}`);
  return [...faults, ...faultsOfResponse(found.method.output, json)];
}
