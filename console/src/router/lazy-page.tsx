import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../parts/button.tsx";
import { Empty } from "../parts/notice.tsx";
import { Loading } from "../parts/parts.tsx";

/**
 * A page whose code is loaded when it is opened first. A browser tab that is older than the installation cannot load
 * it: the page then offers to load the console again.
 */
export function lazyPage<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function LazyPage(props: P) {
    const [state, setState] = useState<"loading" | "loaded" | "failed">("loading");
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then(
        (page) => {
          loaded = page;
          setState("loaded");
        },
        () => setState("failed"),
      );
    }, []);
    const Page = loaded;
    if (Page !== undefined) return <Page {...props} />;
    if (state !== "failed") return <Loading rows={6} />;
    return (
      <Empty icon="alert" title="This page could not be loaded">
        <p class="quiet">The connection failed, or the installation was upgraded since this tab was opened.</p>
        <Button kind="primary" onClick={() => globalThis.location.reload()}>
          Load the console again
        </Button>
      </Empty>
    );
  };
}
