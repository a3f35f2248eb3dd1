// A force-directed layout in small steps, so that the page stays awake between them. Pure: numbers in and out.

// The distance that an edge wants, in units of the layout; the view scales them to the window.
export const EDGE_LENGTH = 60;
const TICKS = 320;
// A cell of the grid is so many lengths wide: vertices in cells beyond the neighbors act as one at their center.
const CELL_LENGTHS = 3;
// The pull to the middle. Against a repulsion that falls with the distance it fills a disc evenly, with about one
// vertex on the square of an edge's length, so that large graphs keep room between vertices.
const GRAVITY = 1;
// The part of a force that becomes a movement; with all of it, vertices would jump to and fro.
const MOBILITY = 0.08;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

// `links` are pairs of numbers of vertices. `known` are the places of the first vertices, kept from a layout before;
// `aspect` is the width of the window by its height, which the layout fills.
export function newLayout(count, links, { known = null, aspect = 1 } = {}) {
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const isHeld = new Uint8Array(count);
  const kept = known ? Math.min(known.x.length, count) : 0;
  for (let each = 0; each < kept; each += 1) [x[each], y[each]] = [known.x[each], known.y[each]];
  placeNew(x, y, kept, links);
  const degree = new Float64Array(count);
  for (const [source, target] of links) {
    degree[source] += 1;
    degree[target] += 1;
  }
  // Places that people know already are not to be thrown about.
  let tick = kept > count / 2 ? Math.round(TICKS * 0.55) : 0;
  const dx = new Float64Array(count);
  const dy = new Float64Array(count);

  function step() {
    dx.fill(0);
    dy.fill(0);
    repel(x, y, dx, dy);
    attract(x, y, dx, dy, links, degree);
    const left = 1 - tick / TICKS;
    const longest = EDGE_LENGTH * (0.02 + 1.4 * left * left);
    for (let each = 0; each < count; each += 1) {
      if (isHeld[each]) continue;
      dx[each] -= (x[each] * GRAVITY) / aspect;
      dy[each] -= y[each] * GRAVITY * aspect;
      const length = Math.hypot(dx[each], dy[each]);
      if (length === 0) continue;
      const moved = Math.min(length * MOBILITY, longest) / length;
      x[each] += dx[each] * moved;
      y[each] += dy[each] * moved;
    }
    tick += 1;
  }

  return {
    x,
    y,
    get isDone() {
      return tick >= TICKS;
    },
    // Run for some milliseconds; at least one step. `now` is a clock.
    run(milliseconds, now = () => performance.now()) {
      const end = now() + milliseconds;
      do step();
      while (tick < TICKS && now() < end);
    },
    // Move a vertex by hand; it then stays there.
    hold(number, toX, toY) {
      isHeld[number] = 1;
      [x[number], y[number]] = [toX, toY];
    },
  };
}

// New vertices begin beside a neighbor that has a place, others on a spiral around the middle: the same each time.
function placeNew(x, y, kept, links) {
  const beside = new Map();
  for (const [source, target] of links) {
    if (source < kept && target >= kept) beside.set(target, source);
    if (target < kept && source >= kept) beside.set(source, target);
  }
  for (let each = kept; each < x.length; each += 1) {
    const near = beside.get(each);
    const radius = near === undefined ? EDGE_LENGTH * 0.6 * Math.sqrt(each + 1) : EDGE_LENGTH * 0.7;
    x[each] = (near === undefined ? 0 : x[near]) + radius * Math.cos(each * GOLDEN_ANGLE);
    y[each] = (near === undefined ? 0 : y[near]) + radius * Math.sin(each * GOLDEN_ANGLE);
  }
}

function gridOf(x, y, size) {
  const cells = new Map();
  for (let each = 0; each < x.length; each += 1) {
    const column = Math.floor(x[each] / size);
    const row = Math.floor(y[each] / size);
    const name = `${column} ${row}`;
    let cell = cells.get(name);
    if (!cell) cells.set(name, (cell = { column, row, members: [], x: 0, y: 0 }));
    cell.members.push(each);
    cell.x += x[each];
    cell.y += y[each];
  }
  for (const cell of cells.values()) {
    cell.x /= cell.members.length;
    cell.y /= cell.members.length;
  }
  return cells;
}

function repel(x, y, dx, dy) {
  const cells = [...gridOf(x, y, EDGE_LENGTH * CELL_LENGTHS).values()];
  const strength = EDGE_LENGTH * EDGE_LENGTH;
  for (const cell of cells) {
    for (const other of cells) {
      const isNear = Math.abs(cell.column - other.column) <= 1 && Math.abs(cell.row - other.row) <= 1;
      for (const each of cell.members) {
        if (!isNear) push(dx, dy, each, x[each] - other.x, y[each] - other.y, strength * other.members.length);
        else for (const rival of other.members) if (rival !== each) pushApart(x, y, dx, dy, each, rival, strength);
      }
    }
  }
}

function push(dx, dy, each, awayX, awayY, strength) {
  const squared = Math.max(awayX * awayX + awayY * awayY, 1);
  dx[each] += (awayX / squared) * strength;
  dy[each] += (awayY / squared) * strength;
}

function pushApart(x, y, dx, dy, each, rival, strength) {
  let awayX = x[each] - x[rival];
  let awayY = y[each] - y[rival];
  // Two vertices in one place leave it in directions that their numbers give.
  if (awayX === 0 && awayY === 0) [awayX, awayY] = [Math.cos(each * GOLDEN_ANGLE), Math.sin(each * GOLDEN_ANGLE)];
  push(dx, dy, each, awayX, awayY, strength);
}

// The pull of an edge grows with its length; ends with many edges are pulled less, or a hub would be a heap.
function attract(x, y, dx, dy, links, degree) {
  for (const [source, target] of links) {
    const alongX = x[target] - x[source];
    const alongY = y[target] - y[source];
    const length = Math.hypot(alongX, alongY);
    const pull = length / EDGE_LENGTH / Math.sqrt(Math.max(1, Math.min(degree[source], degree[target])));
    dx[source] += alongX * pull;
    dy[source] += alongY * pull;
    dx[target] -= alongX * pull;
    dy[target] -= alongY * pull;
  }
}

// Move vertices apart until no two are closer than `distance`, or the rounds are used up. Returns the rounds used.
export function separate(x, y, distance, rounds = 60) {
  for (let round = 0; round < rounds; round += 1) {
    let isClose = false;
    const cells = gridOf(x, y, distance);
    for (const cell of cells.values()) {
      for (let column = cell.column - 1; column <= cell.column + 1; column += 1)
        for (let row = cell.row - 1; row <= cell.row + 1; row += 1)
          for (const other of cells.get(`${column} ${row}`)?.members ?? [])
            for (const each of cell.members) if (each < other) isClose = part(x, y, each, other, distance) || isClose;
    }
    if (!isClose) return round;
  }
  return rounds;
}

function part(x, y, each, other, distance) {
  let alongX = x[other] - x[each];
  let alongY = y[other] - y[each];
  let length = Math.hypot(alongX, alongY);
  if (length >= distance) return false;
  if (length < 1e-6) [alongX, alongY, length] = [Math.cos(other * GOLDEN_ANGLE), Math.sin(other * GOLDEN_ANGLE), 1];
  // A little more than needed, so that the rounds come to an end.
  const half = (distance * 1.01 - Math.min(length, distance)) / 2 / length;
  x[each] -= alongX * half;
  y[each] -= alongY * half;
  x[other] += alongX * half;
  y[other] += alongY * half;
  return true;
}

export function boundsOf(x, y) {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let each = 0; each < x.length; each += 1) {
    left = Math.min(left, x[each]);
    right = Math.max(right, x[each]);
    top = Math.min(top, y[each]);
    bottom = Math.max(bottom, y[each]);
  }
  return x.length ? { left, right, top, bottom } : { left: 0, right: 0, top: 0, bottom: 0 };
}

// The scale and shift that show everything in a window, with room at its borders.
export function fitTo(bounds, width, height, margin = 40) {
  const scale = Math.min(
    (width - 2 * margin) / Math.max(bounds.right - bounds.left, 1),
    (height - 2 * margin) / Math.max(bounds.bottom - bounds.top, 1),
    2,
  );
  return {
    scale: Math.max(scale, 0.01),
    x: width / 2 - ((bounds.left + bounds.right) / 2) * Math.max(scale, 0.01),
    y: height / 2 - ((bounds.top + bounds.bottom) / 2) * Math.max(scale, 0.01),
  };
}
