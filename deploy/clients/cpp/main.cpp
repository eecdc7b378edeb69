// Segments raw RGB frames with a file of `steadyseg export --stateful`.
//
//   ffmpeg -i drive.mp4 -vf scale=480:360 -pix_fmt rgb24 -f rawvideo - | ./steadyseg_client m.onnx > labels.raw
//
// labels.raw gets one byte for each pixel, its class. With --bf16, processors that have bf16
// compute about twice as fast, and about one label in 300 differs.

#include "steadyseg_client.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

int main(int count, char** words) {
    const bool bf16 = count == 3 && !std::strcmp(words[2], "--bf16");
    if (count != 2 + bf16 || words[1][0] == '-')
        return std::fputs("usage: steadyseg_client MODEL.onnx [--bf16] < frames > labels\n", stderr), 2;
    try {
        Client client(words[1], bf16);
        std::fprintf(stderr, "frames of %dx%d, RGB, 8 bits\n", client.width, client.height);
        std::vector<uint8_t> frame(size_t(3) * client.width * client.height);
        size_t frames = 0, read = 0;
        for (; (read = std::fread(frame.data(), 1, frame.size(), stdin)) == frame.size(); ++frames) {
            client.step(frame.data());
            const ov::Tensor label = client.output("label"), entropy = client.output("entropy");
            if (std::fwrite(label.data<uint8_t>(), 1, label.get_size(), stdout) != label.get_size() || std::fflush(stdout))
                throw std::runtime_error(std::string("the labels cannot be written: ") + std::strerror(errno));
            std::vector<size_t> pixels(256);
            double unsure = 0;
            for (size_t at = 0; at < label.get_size(); ++at)
                ++pixels.at(label.data<uint8_t>()[at]), unsure += entropy.data<uint8_t>()[at] / 255.0;
            const size_t most = std::max_element(pixels.begin(), pixels.end()) - pixels.begin();
            std::fprintf(stderr, "%s %.0f %%, mean uncertainty %.3f\n", client.classes.at(most).c_str(),
                         100.0 * pixels.at(most) / label.get_size(), unsure / label.get_size());
        }
        if (read || !frames) throw std::runtime_error("the input ends within a frame, or holds none; is its size right?");
        return 0;
    } catch (const std::exception& error) {
        std::string line = error.what();  // OpenVINO writes several lines, which may quote the file
        for (char& letter : line) letter = static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
        return std::fprintf(stderr, "steadyseg_client: %s\n", line.c_str()), 2;
    }
}
