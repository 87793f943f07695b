import { afterAll, beforeAll, describe } from "vitest";
import { copyCases } from "./queues/copies.ts";
import { createQueuesUnderTest } from "./queues/queues-under-test.ts";

describe("queues of a service that is a copy", () => {
  const fixture = createQueuesUnderTest();
  beforeAll(() => fixture.start({ HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "2" }));
  afterAll(fixture.remove);

  copyCases(fixture);
});
