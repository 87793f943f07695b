import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { findServices } from "./find-services.ts";

/** A list of services with these names, in pages of two; `reads` has the first name of each page that was read. */
function listOf(names: readonly string[], reads: string[] = []): Parameters<typeof findServices>[0] {
  const services = names.map((name) => partial<ManagedService>({ name }));
  const list = (filter: { readonly name?: string } = {}) => ({
    async *pages() {
      for (let first = 0; first < services.length; first += 2) {
        reads.push(names[first] ?? "");
        yield { entries: services.slice(first, first + 2) };
      }
    },
    toArray: async () => services.filter(({ name }) => name === filter.name),
  });
  return { list };
}

const { signal } = new AbortController();
const names = async (list: Parameters<typeof findServices>[0], text: string) =>
  (await findServices(list, text, signal)).map(({ name }) => name);

test("a search finds names by a part of them, in any case", async () => {
  const list = listOf(["first", "second", "orders-first"]);
  expect(await names(list, "irst")).toEqual(["first", "orders-first"]);
  expect(await names(list, " FIR ")).toEqual(["first", "orders-first"]);
  expect(await names(list, "third")).toEqual([]);
});

test("a search among many services reads a bounded number of pages, and finds whole names beyond them", async () => {
  const all = Array.from({ length: 1_000 }, (_, index) => `service-${index}`);
  const reads: string[] = [];
  expect(await names(listOf(all, reads), "service-999")).toEqual(["service-999"]);
  expect(reads).toHaveLength(5);
});
