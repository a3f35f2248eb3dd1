// Labels where they fit: boxes that cover neither a vertex nor another label.

const CELL = 40;
const HEIGHT = 14;
// Between a label and its neighbors.
const GAP = 2;
const CHARACTERS_MAX = 24;

const canvas = document.createElement("canvas").getContext("2d");

// The width of a text in the font of the page, with letters of `pixels`.
export function widthOf(text, pixels) {
  canvas.font = `${pixels}px ${getComputedStyle(document.body).fontFamily}`;
  return canvas.measureText(text).width;
}

export function shortened(text) {
  return text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX - 1)}…` : text;
}

// An index of rectangles: `isFree` tells whether a new one would cover none of those taken.
export function newBoard() {
  const cells = new Map();
  function* cellsOf(box) {
    for (let column = Math.floor(box.left / CELL); column <= Math.floor(box.right / CELL); column += 1)
      for (let row = Math.floor(box.top / CELL); row <= Math.floor(box.bottom / CELL); row += 1)
        yield `${column} ${row}`;
  }
  return {
    take(box) {
      for (const name of cellsOf(box)) cells.set(name, [...(cells.get(name) ?? []), box]);
    },
    isFree(box) {
      for (const name of cellsOf(box))
        for (const other of cells.get(name) ?? [])
          if (box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom)
            return false;
      return true;
    },
  };
}

// The box of a text whose base line begins at a point.
export function boxAt(x, y, width) {
  return { left: x - GAP, right: x + width + GAP, top: y - HEIGHT + 2, bottom: y + 4 };
}

// Places for the labels of vertices: [{ x, y, text, width, importance }] of the circles gives attributes of each text,
// or null, by `radius` and the window. The important ones choose first; a label stands right, left, below or above its
// vertex.
export function placeLabels(circles, radius, window) {
  const board = newBoard();
  for (const { x, y } of circles)
    board.take({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });
  const places = circles.map(() => null);
  const order = circles
    .map((_, number) => number)
    .sort((a, b) => circles[b].importance - circles[a].importance || a - b);
  for (const number of order) {
    const { x, y, text, width } = circles[number];
    if (!text || x < 0 || y < 0 || x > window.width || y > window.height) continue;
    const choices = [
      { left: x + radius + 3, x: x + radius + 3, y: y + 4, "text-anchor": "start" },
      { left: x - radius - 3 - width, x: x - radius - 3, y: y + 4, "text-anchor": "end" },
      { left: x - width / 2, x, y: y + radius + HEIGHT, "text-anchor": "middle" },
      { left: x - width / 2, x, y: y - radius - 5, "text-anchor": "middle" },
    ];
    const free = choices.find(
      (choice) =>
        choice.left >= 0 && choice.left + width <= window.width && board.isFree(boxAt(choice.left, choice.y, width)),
    );
    if (!free) continue;
    const { left, ...place } = free;
    board.take(boxAt(left, place.y, width));
    places[number] = place;
  }
  return { places, board };
}

// Labels of edges have the room that is left.
export function placeEdgeLabels(middles, board) {
  return middles.map(({ x, y, text, width }) => {
    if (!text) return null;
    const box = boxAt(x - width / 2, y + 4, width);
    if (!board.isFree(box)) return null;
    board.take(box);
    return { x, y: y + 4, "text-anchor": "middle" };
  });
}
