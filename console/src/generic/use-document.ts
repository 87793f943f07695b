import { useEffect, useState } from "preact/hooks";
import { account } from "../session/account.ts";
import type { ApiDocument } from "./document.ts";
import { type GenericOperation, operationsOf } from "./generic-view.ts";

let loaded: readonly GenericOperation[] | undefined;

/** The operations of the installation's API, which are read once; undefined until they are loaded. */
export function useOperations(): {
  readonly operations: readonly GenericOperation[] | undefined;
  readonly error: unknown;
} {
  const [operations, setOperations] = useState(loaded);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (loaded !== undefined) return;
    account.value.transport.request<ApiDocument>("GET", "/openapi.json").then((document) => {
      loaded = operationsOf(document);
      setOperations(loaded);
    }, setError);
  }, []);
  return { operations, error };
}
