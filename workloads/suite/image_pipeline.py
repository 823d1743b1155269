"""A tf.data pipeline that decodes JPEG images, crops, mirrors and scales them, and makes batches: a pass over all.

cpu  128 images of 160x160, batches of 32
gpu  1,024 images of 256x256, batches of 128; what it does is done by the CPU

Its items are images. Nothing in it is random, so that every version makes the same.
"""

import numpy

from workloads import compat, training

PARAMS = {
    "size": ("cpu", "gpu"),
}

# These are images, their side, and the size of a batch.
SIZES = {"cpu": (128, 160, 32), "gpu": (1024, 256, 128)}
# This many images are distinct.
DISTINCT = 16


def refuse(tf, params):
    return training.size_refusal(tf, params)


def build(tf, params):
    compat.use_mode(tf, "eager")
    count, side, batch = SIZES[params["size"]]
    draw = numpy.random.RandomState(1)
    # Noise alone would be decoded more slowly than any picture.
    coarse = draw.randint(0, 256, (DISTINCT, side // 16, side // 16, 3)).astype("uint8")
    pictures = coarse.repeat(16, axis=1).repeat(16, axis=2)
    encoded = [tf.io.encode_jpeg(tf.constant(picture)).numpy() for picture in pictures]
    crop = side * 7 // 8

    def prepare(data):
        image = tf.image.decode_jpeg(data, channels=3)
        image = tf.image.resize_with_crop_or_pad(image, crop, crop)
        image = tf.image.flip_left_right(image)
        return tf.cast(image, tf.float32) / 127.5 - 1.0

    dataset = tf.data.Dataset.from_tensor_slices(encoded).repeat(count // DISTINCT)
    dataset = dataset.map(prepare, num_parallel_calls=tf.data.experimental.AUTOTUNE).batch(batch).prefetch(1)

    def step():
        return [tf.reduce_mean(images) for images in dataset]

    step.steps, step.items = count // batch, batch
    return step
