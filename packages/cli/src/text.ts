import { cleanText } from "@tenon/core";

/** A text on one line of a terminal: what others wrote cannot move the cursor. */
export const oneLine = (text: string): string => cleanText(text).replaceAll(/\s*[\n\t]\s*/g, " ");
