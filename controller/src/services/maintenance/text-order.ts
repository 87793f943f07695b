import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { NodeImageObject } from "./node-image.ts";

/**
 * Pure: what of the order of texts changes with the image, as far as the service's data depends on it, such as
 * `ICU 72.1 to 76.1`. Empty where nothing does, and where either is not known: then the agent's look at what the engine
 * tells after the change is what is left.
 */
export function changedTextOrder(
  from: NodeImageObject | undefined,
  to: NodeImageObject,
  instance: InstanceObservation | undefined,
): string[] {
  const [before, after] = [from?.spec.textLibraries ?? {}, to.spec.textLibraries ?? {}];
  return (instance?.textLibraries ?? []).flatMap((library) => {
    const [was, becomes] = [before[library], after[library]];
    return was === undefined || becomes === undefined || was === becomes ? [] : [`${library} ${was} to ${becomes}`];
  });
}

/** For users: why it is not begun by itself, and what to do. */
export function textOrderReason(changed: readonly string[]): string {
  return (
    `It changes the order of text that databases of the service use: ${changed.join(", ")}. It is not begun by itself. Apply it with ` +
    "accept_text_order_change when it suits you, then REINDEX DATABASE each, and ALTER DATABASE ... REFRESH COLLATION VERSION."
  );
}
