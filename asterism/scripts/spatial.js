// `__.spatial`: GeoJSON points and polygons. Distances are along the WGS 84 sphere of mean radius; containment is
// decided in degrees, which is how the service treats small polygons.

const { ScriptError, isArray } = tools;

const EARTH_RADIUS_METERS = 6371008.8;

function isPosition(value) {
    return isArray(value) && value.length >= 2 && Math.abs(value[0]) <= 180 && Math.abs(value[1]) <= 90;
}

function isRing(value) {
    if (!isArray(value) || value.length < 4) {
        return false;
    }
    const last = value[value.length - 1];
    for (let index = 0; index < value.length; index += 1) {
        if (!isPosition(value[index])) {
            return false;
        }
    }
    return value[0][0] === last[0] && value[0][1] === last[1];
}

function spatialFault(shape) {
    if (typeof shape !== "object" || shape === null) {
        return "The value is not an object.";
    }
    if (shape.type === "Point") {
        return isPosition(shape.coordinates) ? undefined : "A point needs a longitude and a latitude.";
    }
    if (shape.type === "Polygon") {
        const rings = shape.coordinates;
        const isWhole = isArray(rings) && rings.length > 0 && rings.every((ring) => isRing(ring));
        return isWhole ? undefined : "A polygon needs rings of at least four positions that end where they begin.";
    }
    return "Only points and polygons are known here.";
}

function needShape(shape, name) {
    const fault = spatialFault(shape);
    if (fault !== undefined) {
        throw new ScriptError(400, 'The "' + name + '" parameter is not a GeoJSON object that is known here. ' + fault);
    }
}

function ringHolds(ring, [longitude, latitude]) {
    let isInside = false;
    for (let index = 0, before = ring.length - 1; index < ring.length; before = index, index += 1) {
        const [x, y] = ring[index];
        const [beforeX, beforeY] = ring[before];
        if (y > latitude !== beforeY > latitude && longitude < ((beforeX - x) * (latitude - y)) / (beforeY - y) + x) {
            isInside = !isInside;
        }
    }
    return isInside;
}

function polygonHolds(polygon, position) {
    const [outer, ...holes] = polygon.coordinates;
    return ringHolds(outer, position) && !holes.some((hole) => ringHolds(hole, position));
}

function positionsOf(shape) {
    return shape.type === "Point" ? [shape.coordinates] : shape.coordinates[0];
}

function metersBetween([longitude, latitude], [otherLongitude, otherLatitude]) {
    const radians = Math.PI / 180;
    const rise = Math.sin(((otherLatitude - latitude) * radians) / 2) ** 2;
    const run = Math.sin(((otherLongitude - longitude) * radians) / 2) ** 2;
    const part = rise + Math.cos(latitude * radians) * Math.cos(otherLatitude * radians) * run;
    return 2 * EARTH_RADIUS_METERS * Math.asin(Math.min(1, Math.sqrt(part)));
}

function edgesCross([a, b], [c, d]) {
    const side = (p, q, r) => Math.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]));
    return side(a, b, c) !== side(a, b, d) && side(c, d, a) !== side(c, d, b);
}

function edgesOf(shape) {
    const positions = positionsOf(shape);
    return positions.slice(1).map((position, index) => [positions[index], position]);
}

function holds(outer, shape) {
    return outer.type === "Polygon" && positionsOf(shape).every((position) => polygonHolds(outer, position));
}

function touch(left, right) {
    if (left.type === "Point" && right.type === "Point") {
        return metersBetween(left.coordinates, right.coordinates) === 0;
    }
    const holdsOne = (outer, shape) =>
        outer.type === "Polygon" && positionsOf(shape).some((position) => polygonHolds(outer, position));
    const crosses = edgesOf(left).some((edge) => edgesOf(right).some((other) => edgesCross(edge, other)));
    return crosses || holdsOne(left, right) || holdsOne(right, left);
}

const spatial = {
    isValid: (shape) => spatialFault(shape) === undefined,
    isValidDetailed(shape) {
        const reason = spatialFault(shape);
        return reason === undefined ? { valid: true } : { valid: false, reason };
    },
    // Between polygons, the distance of their nearest corners.
    distance(left, right) {
        needShape(left, "geoJSON1");
        needShape(right, "geoJSON2");
        if (touch(left, right)) {
            return 0;
        }
        let nearest = Infinity;
        for (const position of positionsOf(left)) {
            for (const other of positionsOf(right)) {
                nearest = Math.min(nearest, metersBetween(position, other));
            }
        }
        return nearest;
    },
    within(inner, outer) {
        needShape(inner, "geoJSON1");
        needShape(outer, "geoJSON2");
        return holds(outer, inner);
    },
    intersects(left, right) {
        needShape(left, "geoJSON1");
        needShape(right, "geoJSON2");
        return touch(left, right);
    },
};

return spatial;
