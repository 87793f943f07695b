import { expect, test, vi } from "vitest";
import { createIdleClose } from "./idle-close.ts";

test("closes immediately if idle, otherwise at the end of the last use", () => {
  const idle = vi.fn();
  createIdleClose(idle).close();
  expect(idle).toHaveBeenCalledOnce();

  const busy = vi.fn();
  const calls = createIdleClose(busy);
  const [first, second] = [calls.begin(), calls.begin()];
  first();
  calls.close();
  first();
  expect(busy).not.toHaveBeenCalled();
  second();
  expect(busy).toHaveBeenCalledOnce();
});
