/** A constant of SQL, for text without backslashes. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
