/** Work of one machine, one piece after the other, in the order in which it was asked for. */
export interface AdmissionTurns {
  /** Rejects with what the work rejects with; the next one has its turn nevertheless. */
  run(machineId: string, work: () => Promise<void>): Promise<void>;
}

export function createAdmissionTurns(): AdmissionTurns {
  const last = new Map<string, Promise<void>>();
  return {
    async run(machineId, work) {
      const before = last.get(machineId);
      const mine = Promise.withResolvers<void>();
      last.set(machineId, mine.promise);
      try {
        await before;
        await work();
      } finally {
        mine.resolve();
        if (last.get(machineId) === mine.promise) last.delete(machineId);
      }
    },
  };
}
