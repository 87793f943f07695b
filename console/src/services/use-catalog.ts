import { useEffect, useState } from "preact/hooks";
import type { Catalog } from "@holdfast/sdk/responses.ts";
import { account } from "../session/account.ts";

let loaded: Catalog | undefined;

/** The catalog of the installation, which is requested once; undefined until it is loaded. */
export function useCatalog(): Catalog | undefined {
  const [catalog, setCatalog] = useState(loaded);
  useEffect(() => {
    if (loaded !== undefined) return;
    account.value.client.catalog().then(
      (response) => {
        loaded = response;
        setCatalog(response);
      },
      (error: unknown) => globalThis.reportError(error),
    );
  }, []);
  return catalog;
}
