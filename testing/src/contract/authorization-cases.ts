import type { DescMethod } from "@bufbuild/protobuf";
import type { Rest } from "../api/rest.ts";
import type { AuthorizationCase, BaseObjects, Existing, ObjectMaker } from "./contract.ts";
import { contractFileOf, contracts, mergeTables } from "./contracts.ts";

/** All served methods by full name. */
export const authorizationCases = mergeTables(({ authorization = [] }) => authorization);

export const nameOf = (method: DescMethod): string => `${method.parent.typeName}.${method.name}`;

/** Throws with the file where a missing case belongs. */
export function caseOf(method: DescMethod): AuthorizationCase {
  const found = authorizationCases[nameOf(method)];
  if (found === undefined) throw new Error(`${nameOf(method)} has no authorization case: ${contractFileOf(method)}`);
  return found;
}

/** The request of a method's case. */
export function requestOf(method: DescMethod, existing: Existing): Record<string, unknown> {
  const request = caseOf(method).request(existing);
  const unknown = Object.keys(request).filter((name) => request[name] === undefined);
  // An invalid request would be rejected before the authorization, and the case would prove nothing.
  if (unknown.length > 0) throw new Error(`no contract creates ${unknown.join(", ")} of ${nameOf(method)}`);
  return request;
}

/**
 * Creates the objects of all contracts in the organization of the REST client's owner. `includesMarked`: also those
 * that no case names.
 */
export async function createExisting(
  rest: Rest,
  marker: string,
  existing: BaseObjects,
  { includesMarked = false } = {},
): Promise<Existing> {
  const maker: ObjectMaker = {
    marker,
    existing,
    async make<T>(path: string, body: object = {}): Promise<T> {
      const response = await rest.post<T>(path, body);
      if (response.status >= 300) throw new Error(`${path}: ${response.status} ${response.text}`);
      return response.json;
    },
    get: async <T>(path: string) => (await rest.get<T>(path)).json,
  };
  const created: Partial<Existing> = {};
  for (const contract of contracts.values()) {
    if (includesMarked) await contract.marked?.(maker);
    Object.assign(created, await contract.existing?.(maker));
  }
  return { ...existing, ...created } as Existing;
}
