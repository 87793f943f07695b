import { createKeyedSemaphore, createSemaphore, type KeyedSemaphore, type Semaphore } from "./semaphore.ts";

/** Runs tasks one after the other, in the order of the calls. A failure affects its own caller only. */
export type Mutex = Semaphore["run"];

/** Runs tasks of one key one after the other, and tasks of different keys concurrently. */
export type KeyedMutex = KeyedSemaphore["run"];

export function createMutex(): Mutex {
  return createSemaphore(1).run;
}

export function createKeyedMutex(): KeyedMutex {
  return createKeyedSemaphore(1).run;
}
